/** The last calls: bounded, newest first, without queries; in /status and on the page. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createActivity } from '../../../src/admin/history/activity.ts';
import { renderCalls } from '../../../src/admin/page/traffic-parts.ts';
import { recordActivity, requestEnded } from '../recorded-activity.ts';
import { textOf } from '../view.ts';

describe('the recent calls', () => {
  it('are the newest 50, newest first, for any number of calls', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 180 }), (count) => {
        let wallAt = -1;
        const activity = createActivity({ wallNow: () => ++wallAt });
        for (let index = 0; index < count; index++) activity.recordRequest(requestEnded(200));
        const expected = Array.from({ length: count }, (_, index) => count - 1 - index).slice(0, 50);
        expect(activity.listRecentCalls()?.map((call) => call.wallAt)).toEqual(expected);
      }),
    );
  });

  it('are shown with their result and why they failed', async () => {
    const recorded = recordActivity();
    await recorded.play(1, () => [
      requestEnded(201, { attempts: 2, queuedMs: 1234, durationMs: 1300 }),
      requestEnded(503, { source: 'sidecar', localReply: 'QUEUE_TIMEOUT', attempts: 0, fault: 'waited 30 s' }),
      requestEnded(200, { cutBy: 'upstream', fault: 'other side closed' }),
      requestEnded(499, { source: 'sidecar' }),
      requestEnded(400, { source: 'sidecar', localReply: 'BAD_REQUEST', method: '', path: '' }),
    ]);
    const calls = recorded.view().status.recentCalls ?? [];
    expect(calls.map(({ status, reason }) => [status, reason])).toEqual([
      ...[
        [400, 'BAD_REQUEST'],
        [499, 'the client left'],
      ],
      ...[
        [200, 'cut off by the upstream'],
        [503, 'QUEUE_TIMEOUT'],
        [201, null],
      ],
    ]);
    expect(calls.at(-1)).toMatchObject({ attempts: 2, waitSeconds: 1.234, durationSeconds: 1.3, source: 'upstream' });
    const page = textOf(renderCalls(recorded.view()).text);
    expect(page).toContain('POST /quotes 201 2 1.2 s 1.3 s –');
    expect(page).toContain('– – 400 1 0 ms 45 ms BAD_REQUEST');
  });

  it('have paths of bounded length, escaped', async () => {
    const recorded = recordActivity();
    await recorded.play(1, () => [requestEnded(200, { path: `/<script>${'x'.repeat(9000)}` })]);
    const { text } = renderCalls(recorded.view());
    expect(text).not.toContain('<script>');
    expect(text.length).toBeLessThan(2000);
  });

  it('are not kept when the setting is off', async () => {
    const recorded = recordActivity({}, false);
    await recorded.play(1, () => [requestEnded(200)]);
    expect(recorded.view().status.recentCalls).toBeNull();
    expect(textOf(renderCalls(recorded.view()).text)).toBe('Not kept: admin.recentCalls is false.');
  });
});
