# One image for every role: `docker run everstep serve`, `… matrix`, and so on.
FROM node:24-bookworm-slim AS build
WORKDIR /app
ENV NODE_ENV=development
COPY package.json package-lock.json .npmrc ./
# The base image has a Node of its own, so the one that npm would bring along is not needed.
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY . .
RUN npm run build --if-present \
  && npm prune --omit=dev --ignore-scripts --no-audit --no-fund

FROM node:24-bookworm-slim
ENV NODE_ENV=production
WORKDIR /app
# What the program writes is in /data and belongs to its user, who is nobody special.
RUN mkdir -p /data && chown node:node /data
COPY --from=build /app /app
USER node
VOLUME /data
ENV EVERSTEP_STORE=lancedb:/data/store \
  EVERSTEP_SUPERVISE=1 \
  EVERSTEP_WORKSPACE=/data/workspace \
  MATRIX_STATE=/data/matrix-state
EXPOSE 4180
ENTRYPOINT ["node", "bin/everstep.js"]
CMD ["serve"]
# For the server; compose.yaml has the bot's own.
HEALTHCHECK --interval=30s --timeout=5s --start-period=20s --retries=3 \
  CMD ["node", "-e", "fetch('http://127.0.0.1:' + (process.env.EVERSTEP_PORT || 4180) + '/health').then((answer) => process.exit(answer.ok ? 0 : 1), () => process.exit(1))"]
