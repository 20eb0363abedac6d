/** Values of `OTEL_TRACES_SAMPLER`. */
export const SAMPLERS = [
  "always_on",
  "always_off",
  "traceidratio",
  "parentbased_always_on",
  "parentbased_always_off",
  "parentbased_traceidratio",
] as const;

/** The `OTEL_…` settings not left to the exporter, which reads address, headers, limits and certificates itself. */
export type TracingSettings = {
  captures_content: boolean;
  service_name: string | undefined;
  sampler: (typeof SAMPLERS)[number];
  /** For ratio samplers, from 0 to 1. */
  ratio: number;
  /** How long spans wait to be batched, in milliseconds. Default: the standard's 5,000. */
  delay_ms: number | undefined;
};
