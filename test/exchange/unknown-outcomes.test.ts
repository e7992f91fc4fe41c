/**
 * Calls that may have been carried out without their client knowing: marked in the problem document, the record and the metric, exactly when
 * the upstream began such a call and the client has no response to it.
 */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { startInProcess, until, type InProcessOptions } from '../composition/in-process.ts';
import { startRawUpstream } from '../composition/raw-upstream.ts';
import { send } from '../composition/send.ts';
import { openSocket } from '../support/raw-client.ts';
import { plans, play, type Plan, type Played } from './played-plan.ts';

/** By the upstream's own account: the newest attempt that reached it decides. */
function isUnknown({ method }: Plan, { reply, begun }: Played): boolean {
  return method !== 'PUT' && typeof reply !== 'number' && begun.at(-1)?.hasSentHead === false;
}

describe('a call that may have been carried out', () => {
  it('is marked, and no other is, however its attempts and the request end', async () => {
    await fc.assert(
      fc.asyncProperty(plans, fc.boolean(), async (plan, leaves) => {
        const played = await play(plan, leaves);
        const { reply, problem, proxy, begun } = played;
        const expected = isUnknown(plan, played);
        expect(proxy.ended()).toMatchObject([{ isOutcomeUnknown: expected }]);
        expect(problem?.outcome).toBe(expected && typeof reply === 'string' ? 'unknown' : undefined);
        expect(String(problem?.detail).endsWith('; the upstream may have carried the call out')).toBe(
          expected && typeof reply === 'string',
        );
        const isDone = begun.some(({ isRead }) => isRead);
        if (isDone && plan.method !== 'PUT' && begun.every(({ hasSentHead }) => !hasSentHead))
          expect(expected).toBe(true);
        if (begun.length === 0) expect(expected).toBe(false);
      }),
      { numRuns: 150 },
    );
  });

  const RESET: InProcessOptions = { respond: (_, response) => void response.destroy() };

  it.each([
    ['POST', 1],
    ['PATCH', 1],
    ['LOCK', 1],
    ['GET', 0],
    ['PUT', 0],
    ['DELETE', 0],
    ['OPTIONS', 0],
  ] as const)('by its method: %s counts %i, in the metric, /status and the page', async (method, count) => {
    const { url, sidecar, metric, requestRecords } = await startInProcess({
      ...RESET,
      env: { SIDECAR_RETRY_ATTEMPTS: '1' },
    });
    expect(await send(url, { method })).toMatchObject({ status: 502, code: 'UPSTREAM_RESET' });
    await requestRecords(1);
    expect(await metric('bearer_sidecar_unknown_outcomes_total{route="default"}')).toBe(count);
    const status = (await (await fetch(`${sidecar.adminUrl}/status`)).json()) as {
      recentCalls: { outcome: unknown }[];
    };
    expect(status.recentCalls.map(({ outcome }) => outcome)).toEqual([count === 1 ? 'unknown' : null]);
    const page = await (await fetch(sidecar.adminUrl)).text();
    expect(page.includes('outcome unknown')).toBe(count === 1);
  });

  it.each([
    ['is marked when its client leaves before a response', '', true],
    [
      'is not marked when its client leaves after the head of one',
      'HTTP/1.1 201 Created\r\nContent-Length: 9\r\n\r\nhalf',
      false,
    ],
  ])('%s', async (_, responded, isMarked) => {
    const { url: apiUrl, received } = await startRawUpstream((socket) => void socket.write(responded));
    const { url, requestRecords } = await startInProcess({ apiUrl });
    const client = await openSocket(url);
    let seen = '';
    client.on('data', (bytes: Buffer) => (seen += bytes.toString('latin1')));
    client.write('POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\r\nbody');
    await until(
      () => received.join('').endsWith('body') && seen.endsWith(responded.slice(-4)),
      'the call at the upstream',
    );
    client.destroy();
    expect(await requestRecords(1)).toMatchObject([{ code: 499, isOutcomeUnknown: isMarked }]);
  });

  it('is marked when the head of its response came and was dropped with the response', async () => {
    const broken = 'HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n';
    const { url: apiUrl } = await startRawUpstream((socket) => void socket.write(broken));
    const { url } = await startInProcess({ apiUrl });
    const { text, code } = await send(url, { method: 'POST', body: 'x' });
    expect(code).toBe('UPSTREAM_PROTOCOL_ERROR');
    expect(JSON.parse(text)).toMatchObject({ outcome: 'unknown' });
  });
});
