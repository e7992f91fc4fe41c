/**
 * Reads the OpenTelemetry environment variables for sampling and batching. The exporter itself reads endpoint, headers and
 * certificates. An invalid value is a warning and the default is used, as OpenTelemetry specifies.
 */

type Environment = Readonly<Record<string, string | undefined>>;

export type TracingSettings = ReturnType<typeof readTracingSettings>;

export interface TraceSampling {
  /** Share of the traces that start here, 0 to 1. */
  readonly ratio: number;
  /** A trace that started elsewhere keeps the sampling decision of its parent. */
  readonly followsParent: boolean;
}

const OTHER_PROTOCOL =
  'OTEL_EXPORTER_OTLP_PROTOCOL is not http/protobuf, the only supported protocol: http/protobuf is used';
const DEFAULT_SAMPLER = 'parentbased_always_on';
const DEFAULT_DELAY_MS = 5000;
const DEFAULT_QUEUE_MAX = 2048;
const DEFAULT_BATCH_MAX = 512;
const MAX_DELAY_MS = 3_600_000;
const MAX_QUEUE_SPANS = 1_000_000;

/** Tracing is on when an endpoint is set and neither OTEL_SDK_DISABLED nor OTEL_TRACES_EXPORTER=none turns it off. */
export function readTracingSettings(env: Environment) {
  const given = (name: string): string | undefined => {
    const value = env[name]?.trim();
    return value === '' ? undefined : value;
  };
  const warnings: string[] = [];
  const variable = ['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', 'OTEL_EXPORTER_OTLP_ENDPOINT'].find((name) => given(name));
  const isOff = given('OTEL_SDK_DISABLED')?.toLowerCase() === 'true' || given('OTEL_TRACES_EXPORTER') === 'none';
  if (variable === undefined || isOff) return { kind: 'off' as const, warnings };
  if (!/^https?:$/.test(URL.parse(given(variable) ?? '')?.protocol ?? '')) {
    // The value may hold a password.
    warnings.push(`${variable} is not an http: or https: URL: nothing is traced`);
    return { kind: 'off' as const, warnings };
  }
  const protocol = given('OTEL_EXPORTER_OTLP_TRACES_PROTOCOL') ?? given('OTEL_EXPORTER_OTLP_PROTOCOL');
  if (protocol !== undefined && protocol !== 'http/protobuf') warnings.push(OTHER_PROTOCOL);
  const whole = (name: string, fallback: number, min: number, max: number): number => {
    const text = given(name);
    if (text === undefined) return fallback;
    if (/^\d{1,9}$/.test(text) && Number(text) >= min && Number(text) <= max) return Number(text);
    warnings.push(`${name} is not a whole number from ${String(min)} to ${String(max)}: ${String(fallback)} is used`);
    return fallback;
  };
  const delayMs = whole('OTEL_BSP_SCHEDULE_DELAY', DEFAULT_DELAY_MS, 1, MAX_DELAY_MS);
  const queueMax = whole('OTEL_BSP_MAX_QUEUE_SIZE', DEFAULT_QUEUE_MAX, 1, MAX_QUEUE_SPANS);
  const batchMax = Math.min(queueMax, whole('OTEL_BSP_MAX_EXPORT_BATCH_SIZE', DEFAULT_BATCH_MAX, 1, MAX_QUEUE_SPANS));
  const sampling = readSampling(given('OTEL_TRACES_SAMPLER'), given('OTEL_TRACES_SAMPLER_ARG'), warnings);
  return { kind: 'on' as const, sampling, batching: { delayMs, queueMax, batchMax }, warnings };
}

function readSampling(name = DEFAULT_SAMPLER, argument: string | undefined, warnings: string[]): TraceSampling {
  const [, parentBased, root] = /^(parentbased_)?(always_on|always_off|traceidratio)$/.exec(name) ?? [];
  if (root === undefined) {
    warnings.push(`OTEL_TRACES_SAMPLER is not a supported sampler: ${DEFAULT_SAMPLER} is used`);
    return { ratio: 1, followsParent: true };
  }
  const followsParent = parentBased !== undefined;
  if (root !== 'traceidratio') return { ratio: root === 'always_on' ? 1 : 0, followsParent };
  return { ratio: readRatio(argument, warnings), followsParent };
}

function readRatio(text: string | undefined, warnings: string[]): number {
  if (text === undefined) return 1;
  if (/^\d(?:\.\d{1,17})?$|^\.\d{1,17}$/.test(text) && Number(text) <= 1) return Number(text);
  warnings.push('OTEL_TRACES_SAMPLER_ARG is not a number from 0 to 1: 1 is used');
  return 1;
}
