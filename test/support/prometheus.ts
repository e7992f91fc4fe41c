/**
 * A real Prometheus on a free port of 127.0.0.1 with a temporary folder, scraping once a second; and promtool, which checks its files.
 * Both come with Debian's package prometheus.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { call } from './calls.ts';
import { GO_ENV } from './go-program.ts';
import { onTestFinished } from 'vitest';
import { stringify } from 'yaml';
import { freePort } from './loopback.ts';
import { startServerProgram } from './server-program.ts';
import { WAIT_TIMEOUT_MS, waitUntil } from './until.ts';

const SCRAPE_INTERVAL = '1s';

export interface PrometheusOptions {
  /** Base URLs of admin ports, all of one job named `sidecar`. */
  readonly targets: readonly string[];
  /** Absolute names of rule files. Default: none. */
  readonly rules?: readonly string[];
}

/** One series of a result; `values` has one for each step. */
export interface Series {
  readonly metric: Readonly<Record<string, string>>;
  readonly values: readonly number[];
}

export interface Rule {
  readonly name: string;
  readonly type: 'alerting' | 'recording';
  /** `ok`, `unknown` or `err`. */
  readonly health: string;
  readonly lastError?: string;
  /** Of an alert: inactive, pending or firing. */
  readonly state?: string;
  readonly alerts?: readonly {
    readonly labels: Readonly<Record<string, string>>;
    readonly annotations: Readonly<Record<string, string>>;
  }[];
}

export interface Prometheus {
  /** The present values. @throws Error with what Prometheus says of a wrong query */
  query(expr: string): Promise<Series[]>;
  /** The last `seconds`, a value each second. @throws as query */
  queryRange(expr: string, seconds: number): Promise<Series[]>;
  rules(): Promise<Rule[]>;
  /** The data of an API path below /api/v1. */
  get(path: string): Promise<unknown>;
}

/** Starts it; it ends with the test. */
export async function startPrometheus({ targets, rules = [] }: PrometheusOptions): Promise<Prometheus> {
  const folder = mkdtempSync(join(tmpdir(), 'prometheus-'));
  const port = await freePort();
  const hosts = targets.map((target) => new URL(target).host);
  const config = {
    global: { scrape_interval: SCRAPE_INTERVAL, scrape_timeout: SCRAPE_INTERVAL, evaluation_interval: SCRAPE_INTERVAL },
    rule_files: rules,
    scrape_configs: [{ job_name: 'sidecar', static_configs: [{ targets: hosts }] }],
  };
  writeFileSync(join(folder, 'prometheus.yml'), stringify(config));
  const files = [`--config.file=${folder}/prometheus.yml`, `--storage.tsdb.path=${folder}/data`];
  const args = [...files, `--web.listen-address=127.0.0.1:${port}`, '--log.level=error'];
  const program = await startServerProgram('prometheus', { args, port, printsErrors: true });
  onTestFinished(async () => {
    await program.stop();
    rmSync(folder, { recursive: true, force: true });
  });
  const url = `http://127.0.0.1:${port}`;
  await waitUntilReady(url);
  return connectTo(url);
}

function connectTo(url: string): Prometheus {
  const ask = async (path: string): Promise<unknown> => {
    const { text } = await call(`${url}/api/v1/${path}`);
    const response = JSON.parse(text) as { status: string; error?: string; data: unknown };
    if (response.status !== 'success') throw new Error(response.error);
    return response.data;
  };
  return {
    get: ask,
    async query(expr) {
      const { result } = (await ask(`query?${new URLSearchParams({ query: expr }).toString()}`)) as QueryResult;
      return result.map(({ metric, value }) => ({ metric, values: numbers(value === undefined ? [] : [value]) }));
    },
    async queryRange(expr, seconds) {
      const end = Date.now() / 1000;
      const range = { query: expr, start: String(end - seconds), end: String(end), step: '1' };
      const { result } = (await ask(`query_range?${new URLSearchParams(range).toString()}`)) as QueryResult;
      return result.map(({ metric, values = [] }) => ({ metric, values: numbers(values) }));
    },
    async rules() {
      const { groups } = (await ask('rules')) as { groups: { rules: Rule[] }[] };
      return groups.flatMap((group) => group.rules);
    },
  };
}

interface QueryResult {
  readonly result: readonly {
    readonly metric: Record<string, string>;
    readonly value?: Sample;
    readonly values?: readonly Sample[];
  }[];
}
type Sample = readonly [at: number, value: string];

function numbers(samples: readonly Sample[]): number[] {
  return samples.map(([, value]) => Number(value.replace('Inf', 'Infinity')));
}

function waitUntilReady(url: string): Promise<void> {
  const isReady = async (): Promise<boolean> => (await call(`${url}/-/ready`)).status === 200;
  return waitUntil(isReady, 'Prometheus is ready');
}

/** Runs promtool and returns its exit code with all that it said. @throws Error when there is none */
export function runPromtool(
  args: readonly string[],
  input = '',
): { readonly code: number | null; readonly said: string } {
  const env = { ...process.env, ...GO_ENV };
  const { error, status, stdout, stderr } = spawnSync('promtool', args, { input, encoding: 'utf8', env });
  if (error !== undefined) {
    throw new Error('promtool is needed by this test (Debian: the package prometheus)', { cause: error });
  }
  return { code: status, said: `${stdout}${stderr}` };
}

/** Polls until `holds` or for two minutes, which only what never comes about takes. @returns the last result in either case */
export async function pollUntil<T>(ask: () => Promise<T>, holds: (result: T) => boolean): Promise<T> {
  const giveUpAt = performance.now() + WAIT_TIMEOUT_MS;
  for (;;) {
    const result = await ask();
    if (holds(result) || performance.now() > giveUpAt) return result;
    await sleep(500);
  }
}
