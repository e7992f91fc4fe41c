/** `bearer-sidecar health`, `wait` and `status`: ask the admin port of a running sidecar, for probes, start scripts and people. */
import { sleep, systemClock } from '../platform/clock.ts';
import type { LoadOptions } from '../config/load/load.ts';
import { toSingleLine } from '../config/load/problems.ts';
import { loadAdminAddress, readAdminText, requestAdminPort, type AdminPortResponse } from './admin-port.ts';
import { parseDurationMs } from './arguments.ts';
import { failWith, paintFor } from './terminal.ts';

const PROBES = ['live', 'ready', 'startup'];
const RESPONSE_TIMEOUT_MS = 2000;
const POLL_INTERVAL_MS = 200;
const MAX_SHOWN_LENGTH = 1000;
/** The least wait for a response, so that `--max 0s` asks once. */
const MIN_RESPONSE_TIMEOUT_MS = 100;

/** @returns 0 when the probe succeeds, 1 when not, 2 for wrong usage or settings */
export async function health(load: LoadOptions, probe: string): Promise<number> {
  if (!PROBES.includes(probe)) return failWith(2, `unknown probe "${probe}"; expected live, ready or startup`);
  const address = loadAdminAddress(load);
  if (address === undefined) return 2;
  const response = await requestAdminPort(address, `/${probe}z`, AbortSignal.timeout(RESPONSE_TIMEOUT_MS));
  return response.status === 200 ? 0 : failWith(1, `not ${probe}: ${shorten(response)}`);
}

/** Polls `/readyz`. @returns 0 once ready, 1 after `max` or when `stop` is aborted, 2 for wrong usage or settings */
export async function waitUntilReady(load: LoadOptions, max: string, stop: AbortSignal): Promise<number> {
  const maxMs = parseDurationMs(max);
  if (maxMs === undefined)
    return failWith(2, `--max "${max}" is not a duration; expected one such as 500ms, 60s or 2m`);
  const address = loadAdminAddress(load);
  if (address === undefined) return 2;
  const endsAt = performance.now() + maxMs;
  for (;;) {
    const leftMs = Math.max(MIN_RESPONSE_TIMEOUT_MS, endsAt - performance.now());
    const timeout = AbortSignal.timeout(Math.min(RESPONSE_TIMEOUT_MS, Math.ceil(leftMs)));
    const response = await requestAdminPort(address, '/readyz', AbortSignal.any([timeout, stop]));
    if (response.status === 200) return 0;
    if (performance.now() + POLL_INTERVAL_MS <= endsAt) await sleep(systemClock, POLL_INTERVAL_MS, stop);
    else return failWith(1, `not ready after ${max}: ${shorten(response)}`);
    if (stop.aborted) return failWith(1, `stopped before it was ready: ${shorten(response)}`);
  }
}

const STATUS_PATHS = { text: '/status.txt', limits: '/limits.txt', json: '/status' } as const;

/** @returns 0 when requests can be served, 1 when not or without a response, 2 for wrong settings */
export async function status(load: LoadOptions, form: keyof typeof STATUS_PATHS, stop: AbortSignal): Promise<number> {
  const address = loadAdminAddress(load);
  if (address === undefined) return 2;
  const reading = await readAdminText(address, STATUS_PATHS[form], stop);
  if (reading.status === undefined) return failWith(1, reading.text);
  // The text may be another program's: only its line ends are kept as they are.
  const [heading = '', ...lines] = reading.text.split('\n').map(toSingleLine);
  const text = [paintFor(process.stdout)('heading', heading), ...lines].join('\n');
  process.stdout.write(`${form === 'json' ? reading.text : text}\n`);
  return (await requestAdminPort(address, '/readyz', stop)).status === 200 ? 0 : 1;
}

function shorten({ text }: AdminPortResponse): string {
  return text.slice(0, MAX_SHOWN_LENGTH);
}
