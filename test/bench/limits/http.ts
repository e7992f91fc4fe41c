/**
 * Two declared limits at three times the load in real time, over HTTP: one sidecar process with a state file, before an upstream that counts
 * exactly and refuses what exceeds either limit. Goodput is the share of what the tighter limit allows in that time. The cases run side by
 * side. Exits with 1 when a call was refused or the goodput is below 0.97.
 * Run: npm run bench:limits-http [-- --seconds 600] [-- --rate auto]
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { Agent } from 'undici';
import { periodMs } from '../../../src/throttle/declared/limit-window.ts';
import { newCredential } from '../../support/secrets.ts';
import { baseSettings, startSidecar, waitUntilReady } from '../../support/sidecar-process.ts';
import { startTokenServer } from '../../support/token-server.ts';
import { seeded } from '../../throttle/simulation.ts';
import { formatTable } from '../governor/format.ts';
import { startUpstream } from '../governor-http/limits.ts';
import { offerCalls } from '../governor-http/load.ts';

const { values } = parseArgs({
  options: { seconds: { type: 'string', default: '60' }, rate: { type: 'string', default: '100000' } },
});

type Limit = readonly [calls: number, per: string];

const CASES: readonly (readonly [Limit, Limit])[] = [
  [
    [100, '10s'],
    [450, '1m'],
  ],
  [
    [350, '10s'],
    [10_000, '1h'],
  ],
];
const LOAD = 3;
const MIN_GOODPUT = 0.97;
const durationMs = Number(values.seconds) * 1000;

const agent = new Agent({ connections: 4000, pipelining: 0, headersTimeout: 120_000 });
const folder = await mkdtemp(join(tmpdir(), 'bench-limits-'));
const played = await Promise.all(CASES.map((limits) => play(limits)));
await agent.destroy();
await rm(folder, { recursive: true });
const HEADER = ['limits', 'offered', 'accepted', 'allowed', 'goodput', 'refused', 'passed on', 'replies'];
console.log(`throttle.rate: ${values.rate}, ${LOAD} × the load, ${values.seconds} s\n`);
console.log(
  formatTable(
    HEADER,
    played.map(({ row }) => row),
  ),
);
process.exitCode = played.every(({ isGood }) => isGood) ? 0 : 1;

async function play(limits: readonly Limit[]): Promise<{ readonly row: string[]; readonly isGood: boolean }> {
  await using tokens = await startTokenServer();
  let refused = 0;
  const isWithin = admitBy(limits);
  await using upstream = await startUpstream((at) => {
    const isAdmitted = isWithin(at);
    if (!isAdmitted) refused++;
    return isAdmitted;
  });
  const name = limits.map(([calls, per]) => `${calls} per ${per}`).join(', ');
  const env = {
    ...baseSettings(upstream.url, tokens.url, newCredential()),
    SIDECAR_RATE: values.rate,
    SIDECAR_BURST: values.rate === 'auto' ? '1' : '10000',
    SIDECAR_THROTTLE_LIMITS: JSON.stringify(limits.map(([calls, per]) => ({ calls, per }))),
    SIDECAR_THROTTLE_STATE_FILE: join(folder, `${limits[0]?.[0]}.json`),
  };
  await using sidecar = await startSidecar({ name: `limits-http-${limits[0]?.[0]}`, env });
  await waitUntilReady(sidecar);
  const rates = limits.map(([calls, per]) => (calls * 1000) / periodMs(per));
  const until = performance.now() + durationMs;
  const perSecond = LOAD * (limits[0]?.[0] === 350 ? Math.max(...rates) : Math.min(...rates));
  const url = `${sidecar.proxyUrl}/limits`;
  const { calls, altered } = await offerCalls({ dispatcher: agent, url, perSecond, until, random: seeded(1) });
  const accepted = upstream.acceptedAt.filter((at) => at < until).length;
  const allowed = Math.min(...limits.map(([most, per]) => countAllowed(most, periodMs(per))));
  const goodput = accepted / allowed;
  const replies = new Map<string, number>();
  for (const { outcome } of calls) replies.set(outcome, (replies.get(outcome) ?? 0) + 1);
  const row = [
    ...[name, calls.length, accepted, Math.round(allowed), goodput.toFixed(4), refused],
    replies.get('429') ?? 0,
    [...replies].map(([outcome, count]) => `${outcome} ${count}`).join(', '),
  ].map(String);
  return { row, isGood: refused === 0 && goodput >= MIN_GOODPUT && altered.length === 0 };
}

/** In whole windows, and in the begun one as many as its rate; a window longer than the run allows all at once. */
function countAllowed(calls: number, windowMs: number): number {
  return windowMs >= durationMs ? calls : (calls * durationMs) / windowMs;
}

/** Sliding logs of what was accepted. */
function admitBy(limits: readonly Limit[]): (at: number) => boolean {
  const logs = limits.map(([calls, per]) => ({ calls, windowMs: periodMs(per), at: [] as number[] }));
  return (at) => {
    for (const log of logs) while (log.at.length > 0 && (log.at[0] ?? 0) <= at - log.windowMs) log.at.shift();
    if (logs.some((log) => log.at.length >= log.calls)) return false;
    for (const log of logs) log.at.push(at);
    return true;
  };
}
