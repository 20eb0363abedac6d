# One image for every role: `docker run everstep serve`, `… matrix`, and so on. It has what `npm install everstep` brings.
FROM node:24-bookworm-slim AS build
WORKDIR /app
ENV NODE_ENV=development
COPY package.json package-lock.json .npmrc ./
# The base image has a Node of its own, so the one that npm would bring along is not needed.
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY . .
RUN mkdir /package && npm pack --pack-destination /package

FROM node:24-bookworm-slim
ENV NODE_ENV=production
COPY --from=build /package /package
# What the program writes is in /data and belongs to its user, who is nobody special.
RUN npm install --global --no-audit --no-fund /package/*.tgz \
  && npm cache clean --force \
  && rm -r /package \
  && mkdir -p /data \
  && chown node:node /data
USER node
WORKDIR /data
VOLUME /data
ENV EVERSTEP_STORE=lancedb:/data/store \
  EVERSTEP_SUPERVISE=1 \
  EVERSTEP_WORKSPACE=/data/workspace \
  MATRIX_STATE=/data/matrix-state
EXPOSE 4180
ENTRYPOINT ["everstep"]
CMD ["serve"]
# For the server; compose.yaml has the bot's own.
HEALTHCHECK --interval=30s --timeout=5s --start-period=20s --retries=3 \
  CMD ["node", "-e", "fetch('http://127.0.0.1:' + (process.env.EVERSTEP_PORT || 4180) + '/health').then((answer) => process.exit(answer.ok ? 0 : 1), () => process.exit(1))"]
