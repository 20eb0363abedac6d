/** Values of `OTEL_TRACES_SAMPLER`. */
export const SAMPLERS = [
  "always_on",
  "always_off",
  "traceidratio",
  "parentbased_always_on",
  "parentbased_always_off",
  "parentbased_traceidratio",
] as const;

/** What of the environment's `OTEL_…` is not left to the exporter, which reads address, headers, limits and certificates itself. */
export type TracingSettings = {
  captures_content: boolean;
  service_name: string | undefined;
  sampler: (typeof SAMPLERS)[number];
  /** For samplers by ratio, from 0 to 1. */
  ratio: number;
  /** Milliseconds that spans wait until they are sent along with others; the standard's 5,000 by default. */
  delay_ms: number | undefined;
};
