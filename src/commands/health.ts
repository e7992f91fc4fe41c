/** `bearer-sidecar health` and `wait`: ask a running sidecar's admin port, for HEALTHCHECK, exec probes and start scripts. */
import { get } from '../platform/http.ts';
import type { ListenAddress } from '../config/config.ts';
import { loadConfig, type LoadOptions } from '../config/load/load.ts';
import { ORDINARY_CLIENT } from '../config/ordinary-client.ts';
import { formatProblems } from '../config/load/problems.ts';

const PROBES: Readonly<Record<string, string>> = { live: '/livez', ready: '/readyz', startup: '/startupz' };
const ANSWER_TIMEOUT_MS = 2000;
const POLL_MS = 200;
/** So long is an answer waited for although the time is up: `--max 0s` asks once. */
const LEAST_ANSWER_MS = 100;

/** @returns 0 when the probe says so, 1 when not, 2 for wrong usage or settings */
export async function health(load: LoadOptions, probe: string): Promise<number> {
  const path = PROBES[probe];
  if (path === undefined) return fail(2, `unknown probe "${probe}"; expected live, ready or startup`);
  const address = adminAddress(load);
  if (address === undefined) return 2;
  const answer = await ask(address, path, AbortSignal.timeout(ANSWER_TIMEOUT_MS));
  return answer.status === 200 ? 0 : fail(1, `not ${probe}: ${answer.words}`);
}

/** Polls `/readyz`. @returns 0 once ready, 1 when `max` has passed or `stop` has come, 2 for wrong usage or settings */
export async function waitUntilReady(load: LoadOptions, max: string, stop: AbortSignal): Promise<number> {
  const maxMs = readDuration(max);
  if (maxMs === undefined) return fail(2, `--max "${max}" is not a duration; expected one such as 500ms, 60s or 2m`);
  const address = adminAddress(load);
  if (address === undefined) return 2;
  const endsAt = performance.now() + maxMs;
  for (;;) {
    const leftMs = Math.max(LEAST_ANSWER_MS, endsAt - performance.now());
    const late = AbortSignal.timeout(Math.min(ANSWER_TIMEOUT_MS, Math.ceil(leftMs)));
    const answer = await ask(address, '/readyz', AbortSignal.any([late, stop]));
    if (answer.status === 200) return 0;
    if (performance.now() + POLL_MS <= endsAt) await pause(POLL_MS, stop);
    else return fail(1, `not ready after ${max}: ${answer.words}`);
    if (stop.aborted) return fail(1, `stopped before it was ready: ${answer.words}`);
  }
}

/** Resolves after the time, or with the signal. */
function pause(ms: number, stop: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      clearTimeout(timer);
      stop.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, stop.aborted ? 0 : ms);
    stop.addEventListener('abort', end);
  });
}

/** Only the admin port's address matters here: what else is missing is no reason not to ask. */
function adminAddress(load: LoadOptions): ListenAddress | undefined {
  const preset = {
    name: 'health',
    values: {
      ...ORDINARY_CLIENT,
      'upstream.baseUrl': 'http://localhost',
      'auth.url': 'http://localhost',
      'auth.clientId': 'none',
      'auth.clientSecret': 'none',
      'auth.audience': 'http://localhost',
    },
  };
  const loaded = loadConfig({ ...load, preset });
  if (loaded.ok) return loaded.config.admin.address;
  process.stderr.write(formatProblems(loaded.problems));
  return undefined;
}

interface ProbeAnswer {
  readonly status: number | undefined;
  readonly words: string;
}

/** Never rejects. @param until ends it, the answer in its middle as well */
function ask(address: ListenAddress, path: string, until: AbortSignal): Promise<ProbeAnswer> {
  const where =
    address.kind === 'unix' ? { socketPath: address.path } : { host: loopbackFor(address.host), port: address.port };
  return new Promise((resolve) => {
    const request = get({ ...where, path, signal: until, headers: { host: '127.0.0.1' } }, (response) => {
      response.setEncoding('utf8');
      let text = '';
      response.on('data', (chunk: string) => (text = (text + chunk).slice(0, 1000)));
      response.on('end', () => {
        resolve({ status: response.statusCode, words: text.trim() });
      });
    });
    let why = 'it closed the connection in the middle of its answer';
    request.on('error', (error) => {
      why = error.message;
    });
    // Comes last and always; of an answer that is cut off nothing else may come.
    request.on('close', () => {
      const words = until.aborted ? 'no answer in time' : why;
      resolve({ status: undefined, words: `the admin port does not answer (${words})` });
    });
  });
}

/** A sidecar that listens everywhere is asked at home. */
function loopbackFor(host: string): string {
  if (host === 'localhost' || host === '0.0.0.0') return '127.0.0.1';
  return host === '::' ? '::1' : host;
}

function readDuration(text: string): number | undefined {
  const [, number, unit] = /^(\d{1,6})(ms|s|m)?$/.exec(text) ?? [];
  if (number === undefined) return undefined;
  return Number(number) * (unit === 'ms' ? 1 : unit === 'm' ? 60_000 : 1000);
}

function fail(exitCode: number, why: string): number {
  process.stderr.write(`bearer-sidecar: ${why}\n`);
  return exitCode;
}
