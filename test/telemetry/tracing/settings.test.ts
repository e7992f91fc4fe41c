/** The environment variables of OpenTelemetry: names and defaults are its own. */
import { describe, expect, it } from 'vitest';
import { readTracingSettings } from '../../../src/telemetry/tracing/settings.ts';

const endpoint = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector.example:4318' };

describe('tracing is on or off', () => {
  it.each([
    [{}, 'off'],
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: '' }, 'off'],
    [endpoint, 'on'],
    [{ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'https://collector.example/v1/traces' }, 'on'],
    [{ ...endpoint, OTEL_SDK_DISABLED: 'TRUE' }, 'off'],
    [{ ...endpoint, OTEL_SDK_DISABLED: 'yes' }, 'on'],
    [{ ...endpoint, OTEL_TRACES_EXPORTER: 'none' }, 'off'],
    [{ ...endpoint, OTEL_TRACES_EXPORTER: 'otlp' }, 'on'],
  ])('%j: %s', (env, kind) => {
    expect(readTracingSettings(env)).toMatchObject({ kind, warnings: [] });
  });

  it.each(['collector:4318', '//collector', 'user:hunter2@collector'])(
    'not with %s, and the value is not repeated',
    (url) => {
      const settings = readTracingSettings({ OTEL_EXPORTER_OTLP_ENDPOINT: url });
      expect(settings).toEqual({
        kind: 'off',
        warnings: ['OTEL_EXPORTER_OTLP_ENDPOINT is not an http: or https: URL: nothing is traced'],
      });
    },
  );
});

describe('sampling and batching', () => {
  it('have defaults', () => {
    expect(readTracingSettings(endpoint)).toEqual({
      kind: 'on',
      sampling: { ratio: 1, followsParent: true },
      batching: { delayMs: 5000, queueMax: 2048, batchMax: 512 },
      warnings: [],
    });
  });

  it.each([
    ['always_on', undefined, 1, false],
    ['always_off', undefined, 0, false],
    ['traceidratio', '0.25', 0.25, false],
    ['traceidratio', undefined, 1, false],
    ['parentbased_always_on', '0.25', 1, true],
    ['parentbased_always_off', undefined, 0, true],
    ['parentbased_traceidratio', '.5', 0.5, true],
  ])('%s with %s', (sampler, argument, ratio, followsParent) => {
    const env = { ...endpoint, OTEL_TRACES_SAMPLER: sampler, OTEL_TRACES_SAMPLER_ARG: argument };
    expect(readTracingSettings(env)).toMatchObject({ sampling: { ratio, followsParent }, warnings: [] });
  });

  it('limits the batch size to the queue size', () => {
    const env = { ...endpoint, OTEL_BSP_SCHEDULE_DELAY: '100', OTEL_BSP_MAX_QUEUE_SIZE: '20' };
    expect(readTracingSettings(env)).toMatchObject({ batching: { delayMs: 100, queueMax: 20, batchMax: 20 } });
  });

  it.each([
    ['OTEL_TRACES_SAMPLER', 'sometimes'],
    ['OTEL_BSP_SCHEDULE_DELAY', '5s'],
    ['OTEL_BSP_MAX_QUEUE_SIZE', '0'],
    ['OTEL_BSP_MAX_EXPORT_BATCH_SIZE', '-1'],
    ['OTEL_EXPORTER_OTLP_PROTOCOL', 'grpc'],
  ])('%s=%s gives a warning and the default', (name, value) => {
    const settings = readTracingSettings({ ...endpoint, [name]: value });
    expect(settings).toEqual({ ...readTracingSettings(endpoint), warnings: [expect.stringContaining(name)] });
  });

  it.each(['2', '-1', '1e-1', 'half'])('a ratio of %s gives a warning and 1', (ratio) => {
    const env = { ...endpoint, OTEL_TRACES_SAMPLER: 'traceidratio', OTEL_TRACES_SAMPLER_ARG: ratio };
    expect(readTracingSettings(env)).toMatchObject({
      sampling: { ratio: 1 },
      warnings: ['OTEL_TRACES_SAMPLER_ARG is not a number from 0 to 1: 1 is used'],
    });
  });
});
