/** How a proposal for `throttle.refusals` appears in /status and on the page. */
import { expect, test } from 'vitest';
import { describeStatus } from '../../src/admin/status/status.ts';
import { renderThrottles } from '../../src/admin/page/throttle-part.ts';
import { createProposal } from '../../src/throttle/refusal-evidence/refusal-proposal.ts';
import { healthy, unpaced, validToken } from './states.ts';

const finding = {
  status: 503 as const,
  ...{ refused: 60, accepted: 120, windows: 12, acceptedPerWindow: 100, shareAtHighRate: 1 },
  ...{ shareAtLowRate: undefined, firstAt: 1000, lastAt: 5000 },
};

const propose = (windowMs: number) =>
  describeStatus({
    ...{ version: '1', verdict: healthy, alerts: [], uptimeMs: 1, draining: false, tokens: [validToken] },
    throttles: [{ ...unpaced, refusalProposals: [createProposal({ ...finding, windowMs }, [], (at) => at)] }],
  });

test('the status has the evidence, its figures and the line to paste', () => {
  expect(propose(10_000).throttle.refusalProposals).toEqual([
    {
      ...{ status: 503, refused: 60, accepted: 120, windows: 12, acceptedPerWindow: 100, windowSeconds: 10 },
      ...{ shareAtHighRate: 1, shareAtLowRate: null },
      ...{ since: '1970-01-01T00:00:01.000Z', lastAt: '1970-01-01T00:00:05.000Z' },
      evidence: '503 is likely a rate limit: about 100 calls were accepted in 10 s before it, in each of 12 windows',
      setting: 'throttle: { refusals: [{"status":503}] }',
      variable: `SIDECAR_THROTTLE_REFUSALS='[{"status":503}]'`,
    },
  ]);
});

test('a window without a fixed length is null', () => {
  const [proposal] = propose(Infinity).throttle.refusalProposals;
  expect(proposal).toMatchObject({ windowSeconds: null });
  expect(proposal?.evidence).toContain('between two recoveries');
});

test('the page shows the line to paste, in cards and in the table', () => {
  const status = propose(10_000);
  for (const count of [1, 3]) {
    const throttles = Array.from({ length: count }, () => status.throttle);
    const { text } = renderThrottles({ status: { ...status, throttles }, nowWallAt: 0 });
    expect(text.match(/refusals: \[\{&#34;status&#34;:503\}\]/g)).toHaveLength(count);
  }
});
