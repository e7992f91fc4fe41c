/**
 * `npm run bench:replication`: 401s that clients see while an API learns late of new tokens, node by node, in virtual time: 20 calls per
 * second, of which every seventh cannot be sent again, over two renewals. Prints a table.
 */
import { ReplicatedApi, seen401s, type ApiCall, type ApiSetup } from '../token/source/replicated-api.ts';

const CALL_EVERY_MS = 50;
const LATE_MS = [300, 1_500, 5_000, 10_000];
const LIFETIMES_MS = [60_000, 3_600_000];

type Run = () => Promise<{ readonly api: ReplicatedApi; readonly calls: readonly ApiCall[] }>;

const renewing =
  (setup: ApiSetup, everyNth = 7): Run =>
  async () => {
    const api = await ReplicatedApi.warm({ ...setup, latencyMs: 50 });
    return { api, calls: await api.loadAroundRenewals(2, CALL_EVERY_MS, everyNth) };
  };

const starting =
  (setup: ApiSetup): Run =>
  async () => {
    const api = new ReplicatedApi(setup);
    api.harness.source.start();
    return { api, calls: await api.load(40_000, CALL_EVERY_MS, 7) };
  };

const revoked: Run = async () => {
  const api = await ReplicatedApi.warm({ lifetimeMs: 3_600_000 });
  await api.harness.clock.advance(600_000);
  await api.load(1_000, CALL_EVERY_MS, 7);
  const now = api.harness.clock.now();
  api.delayOf = ({ obtainedAt }) => (obtainedAt < now ? Infinity : 0);
  return { api, calls: await api.load(40_000, CALL_EVERY_MS, 7) };
};

/** One path refuses every token, and the others are used meanwhile. */
const forbidden =
  (setup: ApiSetup): Run =>
  async () => {
    const api = await ReplicatedApi.warm(setup);
    const isForbidden = new Set<ApiCall>();
    const calls: ApiCall[] = [];
    for (let n = 0; n < 2; n++) {
      await api.harness.clock.advance(Math.max(0, (api.harness.source.state().nextRequestInMs ?? 0) - 2_000));
      for (let elapsed = 0; elapsed < 30_000; elapsed += CALL_EVERY_MS) {
        if (elapsed % 1_000 === 500) isForbidden.add(api.start({ isForbidden: true }));
        calls.push(api.start({ canReplay: elapsed % 350 !== 300 }));
        await api.harness.clock.advance(CALL_EVERY_MS);
      }
      await api.harness.clock.advance(5_000);
    }
    return { api, calls };
  };

const RUNS: Record<string, Run> = {};
for (const lifetimeMs of LIFETIMES_MS) {
  const life = `${String(lifetimeMs / 1000)} s`;
  for (const late of LATE_MS)
    for (const [when, random] of Object.entries({ early: 0, late: 0.999 }))
      RUNS[`two nodes, one ${String(late / 1000)} s late, tokens of ${life}, renewed ${when}`] = renewing({
        nodeDelaysMs: [0, late],
        lifetimeMs,
        random,
      });
  for (const late of [300, 1_500, 3_000, 20_000])
    RUNS[`all nodes ${String(late / 1000)} s late, tokens of ${life}`] = renewing({ nodeDelaysMs: [late], lifetimeMs });
  RUNS[`one node without delay, tokens of ${life}`] = renewing({ lifetimeMs });
  RUNS[`previous token revoked on issue, tokens of ${life}`] = renewing({ lifetimeMs, revokesOnIssue: true });
  RUNS[`previous revoked on issue, only calls that cannot be repeated, tokens of ${life}`] = renewing(
    { lifetimeMs, revokesOnIssue: true },
    1,
  );
  RUNS[`two nodes, one 5 s late, only calls that cannot be repeated, tokens of ${life}`] = renewing(
    { nodeDelaysMs: [0, 5_000], lifetimeMs },
    1,
  );
}
RUNS['a path that refuses every token, one node'] = forbidden({ lifetimeMs: 3_600_000 });
RUNS['a path that refuses every token, two nodes, one 5 s late'] = forbidden({
  nodeDelaysMs: [0, 5_000],
  lifetimeMs: 3_600_000,
});
RUNS['token revoked in mid-life'] = revoked;
for (const late of [300, 1_500, 3_000, 20_000]) {
  RUNS[`first token, all nodes ${String(late / 1000)} s late`] = starting({ nodeDelaysMs: [late] });
  RUNS[`first token, two nodes, one ${String(late / 1000)} s late`] = starting({ nodeDelaysMs: [0, late] });
}

console.log(
  '| API | calls | 401 to clients | of them repeatable | 401 at the API | tokens | waited > 0.3 s | longest ms |',
);
console.log('| --- | --- | --- | --- | --- | --- | --- | --- |');
for (const [name, run] of Object.entries(RUNS)) {
  const { api, calls } = await run();
  const waits = calls.map(({ startedAt, endedAt }) => endedAt - startedAt);
  const refused = seen401s(calls);
  const row = [
    calls.length,
    refused.length,
    refused.filter(({ canReplay }) => canReplay).length,
    calls.flatMap(({ sent }) => sent).filter(({ status }) => status === 401).length,
    api.harness.requests,
    waits.filter((ms) => ms > 300).length,
    Math.max(...waits),
  ];
  console.log(`| ${name} | ${row.map(String).join(' | ')} |`);
}
