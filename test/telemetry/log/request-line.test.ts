/** Which requests are logged, and the fields that docs/logs.md lists. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { createAccessDescriber } from '../../../src/telemetry/log/request-line.ts';
import type { RequestRecord } from '../../../src/telemetry/request-record.ts';
import { createLog } from '../../../src/telemetry/log/log.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { MemoryStream } from './memory-stream.ts';

const request: RequestRecord = {
  route: 'default',
  method: 'POST',
  path: '/policies',
  code: 201,
  source: 'upstream',
  durationMs: 999.9,
  queuedMs: 7,
  attempts: 1,
  requestBytes: 21,
  responseBytes: 300,
};

/** Gives these numbers in turn, again and again. */
function chance(...numbers: number[]): () => number {
  let at = 0;
  return () => numbers[at++ % numbers.length] ?? 0;
}

describe('sampling', () => {
  it('logs every request by default, without the field sampled', () => {
    const describeRequest = createAccessDescriber({ share: 1, slowMs: 1000, random: () => 0.999999 });
    expect(describeRequest(request)).toMatchObject({ code: 201, sampled: undefined });
    expect(createAccessDescriber()(request)).toMatchObject({ code: 201, sampled: undefined });
  });

  it('logs a random share of successful, fast requests and states the share', () => {
    const describeRequest = createAccessDescriber({ share: 0.25, slowMs: 1000, random: chance(0.2, 0.25, 0.9, 0) });
    const lines = Array.from({ length: 4 }, () => describeRequest(request));
    expect(lines.map((line) => line?.sampled)).toEqual([0.25, undefined, undefined, 0.25]);
  });

  it.each([
    ['a client error', { code: 404 }],
    ['a server error', { code: 503 }],
    ['a reply of the sidecar itself', { code: 200, source: 'sidecar', localReply: 'QUEUE_FULL' }],
    ['a response that was cut off', { fault: 'cut' }],
    ['a slow one', { durationMs: 1000 }],
  ] as const)('logs %s always, and its line says so', (_, how) => {
    const describeRequest = createAccessDescriber({ share: 0, slowMs: 1000, random: () => 0 });
    expect(describeRequest({ ...request, ...how })).toMatchObject({ sampled: 1 });
    expect(describeRequest(request)).toBeUndefined();
  });

  it('omits whole lines', async () => {
    const stream = new MemoryStream();
    const sampling = { share: 0.5, slowMs: 1000, random: chance(0.4, 0.6) };
    const log = createLog({ level: 'info', destination: stream, clock: new ManualClock(), sampling });
    for (let count = 0; count < 10; count++) for (const record of log.recorders.requests) record(request);
    await log.close(0);
    expect(stream.lines.map(({ sampled }) => sampled)).toEqual(Array(5).fill(0.5));
  });
});

describe('docs/logs.md', () => {
  const text = readFileSync(join(import.meta.dirname, '../../..', 'docs', 'logs.md'), 'utf8');
  const rows = [...text.matchAll(/^- (\(?)`(\w+)`\)?: /gm)].map(([, optional = '', field = '']) => ({
    field,
    isAlways: optional === '',
  }));

  it('names the fields of a real line, in their order', async () => {
    const full: RequestRecord = {
      ...request,
      localReply: 'UPSTREAM_RESET',
      fault: 'reset',
      isOutcomeUnknown: true,
      caller: 'billing',
      upstreamRequestId: 'theirs',
      traceId: 'ab'.repeat(16),
    };
    expect(Object.keys(await lineOf(full))).toEqual(rows.map(({ field }) => field));
  });

  it('states which fields are always present', async () => {
    const always = rows.filter(({ isAlways }) => isAlways).map(({ field }) => field);
    expect(Object.keys(await lineOf(request, 1))).toEqual(always);
  });

  async function lineOf(event: RequestRecord, share = 0.5): Promise<Record<string, unknown>> {
    const stream = new MemoryStream();
    const sampling = { share, slowMs: 1000, random: () => 0 };
    const log = createLog({ level: 'info', destination: stream, clock: new ManualClock(), sampling });
    for (const record of log.recorders.requests) record(event);
    await log.close(0);
    return stream.lines[0] ?? {};
  }
});
