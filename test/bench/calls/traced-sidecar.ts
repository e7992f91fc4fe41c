/** The `run` command with default settings and default logging, in a process of its own that records its calls. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { RecordedCalls, RecordingCommand } from './recorded-calls.ts';

const START_TIMEOUT_MS = 60_000;
/** The log writes what belongs to a request a little after it. */
const SETTLE_MS = 30;

export class TracedSidecar implements AsyncDisposable {
  readonly proxyUrl: string;
  readonly adminUrl: string;
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess, proxyUrl: string, adminUrl: string) {
    this.#child = child;
    this.proxyUrl = proxyUrl;
    this.adminUrl = adminUrl;
  }

  /** @param root the folder of the project whose src/ runs */
  static async start(root: string, env: Readonly<Record<string, string>>): Promise<TracedSidecar> {
    const args = ['--import', join(root, 'test/bench/calls/trace-calls.ts'), join(root, 'src/main.ts'), 'run'];
    const child = spawn(process.execPath, args, {
      cwd: root,
      env: { PATH: process.env.PATH ?? '', SIDECAR_LISTEN: '127.0.0.1:0', SIDECAR_ADMIN_LISTEN: '127.0.0.1:0', ...env },
      stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
    });
    process.once('exit', () => child.kill('SIGKILL'));
    const urls = await readUrls(child);
    return new TracedSidecar(child, urls.proxy, urls.admin);
  }

  /**
   * Records the calls of `action` and of what follows it within some milliseconds, half a second after another one, by the clock of the process: that one begins
   * what requests share, such as a second of a count and a batch of log lines. The clock stands still afterwards.
   */
  async record(action: () => Promise<unknown>): Promise<RecordedCalls> {
    await this.stopClock();
    await action();
    await sleep(SETTLE_MS);
    await this.#command('start');
    await action();
    await sleep(SETTLE_MS);
    return (await this.#command('stop')) as RecordedCalls;
  }

  /** No timer fires until `startClock`, and only recordings move the time: each by a second. */
  async stopClock(): Promise<void> {
    await this.#command('stop-clock');
  }

  async startClock(): Promise<void> {
    await this.#command('start-clock');
  }

  async #command(command: RecordingCommand): Promise<unknown> {
    const reply = once(this.#child, 'message');
    this.#child.send(command);
    return (await reply)[0];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode !== null) return;
    const exit = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await exit;
  }
}

/** Reads the log to its end: an unread pipe would be another situation. */
async function readUrls(child: ChildProcess): Promise<{ proxy: string; admin: string }> {
  if (child.stdout === null) throw new Error('the log is not readable');
  const found = new Map<string, string>();
  return await new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error('the sidecar does not listen')), START_TIMEOUT_MS);
    child.once('exit', (code) => reject(new Error(`the sidecar ended with ${String(code)}`)));
    createInterface({ input: child.stdout as NodeJS.ReadableStream }).on('line', (line) => {
      const { msg, server, url } = JSON.parse(line) as { msg?: string; server?: string; url?: string };
      if (msg === 'listening' && server !== undefined && url !== undefined) found.set(server, url);
      const [proxy, admin] = [found.get('proxy'), found.get('admin')];
      if (proxy === undefined || admin === undefined) return;
      clearTimeout(timer);
      resolve({ proxy, admin });
    });
  });
}
