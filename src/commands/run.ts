/** `bearer-sidecar run`: the sidecar from its configuration, until a signal. */
import { once } from 'node:events';
import { setImmediate } from 'node:timers/promises';
import { authorizationServerUrl, listProxyPasswords, type Config } from '../config/config.ts';
import { loadConfig, hasConfigFile } from '../config/load/load.ts';
import type { LoadedConfig, LoadOptions, LoadResult } from '../config/load/load.ts';
import { formatWarnings } from '../config/load/problems.ts';
import { startSidecar, type Sidecar } from '../composition/sidecar.ts';
import { sizeThreadPool } from '../composition/thread-pool.ts';
import { systemClock } from '../platform/clock.ts';
import type { Log } from '../telemetry/log/log.ts';
import { openTracing } from '../telemetry/tracing/open-tracing.ts';
import { describeStartup } from './banner.ts';
import { describeLoadFailure } from './load-failure.ts';
import { listenForSighup } from './sighup.ts';
import { terminalWidthOf, paintFor } from './terminal.ts';
import { isReadableFormat, openLog, breakLineOnStop } from './readable-log.ts';

const LOG_FLUSH_TIMEOUT_MS = 500;
/** Longest wait for the last spans, before that. */
const SPAN_FLUSH_TIMEOUT_MS = 1000;

/** @returns 0 when no request was cut, 1 when one was or the start failed, 2 for invalid settings */
export async function run(
  { warnings, ...load }: LoadOptions & { readonly warnings: readonly string[] },
  version: string,
  stop: AbortSignal,
): Promise<number> {
  const loaded = loadConfig(load);
  if (!loaded.ok) {
    process.stderr.write(
      formatWarnings([...warnings, ...loaded.warnings]) + describeLoadFailure(load, loaded.problems),
    );
    return 2;
  }
  sizeThreadPool(loaded.config);
  const { log: logConfig } = loaded.config;
  const { stdout } = process;
  const log = openLog(logConfig, stdout);
  for (const warning of [...warnings, ...loaded.warnings]) log.warn(warning);
  const reloadConfig = hasConfigFile(load) ? () => loadConfig(load) : undefined;
  const onListening = (urls: Sidecar): void => {
    if (!stdout.isTTY || !isReadableFormat(logConfig.format, stdout)) return;
    stdout.write(describeStartup(loaded, version, urls, { paint: paintFor(stdout), columns: terminalWidthOf(stdout) }));
    breakLineOnStop(logConfig.format, stdout, stop);
  };
  return serve({ loaded, reloadConfig, version, log, stop, onListening });
}

export interface ServeOptions {
  readonly loaded: LoadedConfig;
  /** Reads the configuration again; undefined where there is no file. */
  readonly reloadConfig: (() => LoadResult) | undefined;
  readonly version: string;
  readonly log: Log;
  readonly stop: AbortSignal;
  readonly onListening: (sidecar: Sidecar) => void;
}

/**
 * Serves until `stop`, `POST /quitquitquit` or the end of its terminal, then drains. SIGHUP reloads the configuration.
 * @returns 0 when no request was cut, else 1
 * @throws Error for the user when it cannot start
 */
export async function serve({ loaded, reloadConfig, version, log, stop, onListening }: ServeOptions): Promise<number> {
  const hangUp = listenForSighup();
  const quit = new AbortController();
  let tracing: Awaited<ReturnType<typeof openTracing>>;
  try {
    for (const password of listProxyPasswords(loaded.config.egress)) log.secrets.add(password);
    tracing = await openTracingFor(loaded.config, version, log);
    if (await wasStopped(stop)) {
      log.observe({ kind: 'stopped', cut: 0 });
      return 0;
    }
    const sidecar = await startSidecar({
      config: loaded.config,
      version,
      log: {
        ...log,
        observe(event) {
          log.observe(event);
          tracing?.observe(event);
        },
      },
      source: { loaded, load: reloadConfig },
      startTracer: tracing?.startTracer,
      onQuit: () => {
        log.warn('asked to end by POST /quitquitquit');
        quit.abort();
      },
    });
    onListening(sidecar);
    hangUp.onReload(sidecar.reload);
    // Frees the memory that only the start needed, with `--expose-gc` only (the image sets it): the heap may never fill up later.
    globalThis.gc?.({ type: 'major', execution: 'sync', flavor: 'last-resort' });
    const end = AbortSignal.any([stop, quit.signal, hangUp.terminalClosed]);
    if (!end.aborted) await once(end, 'abort');
    return (await sidecar.drain()) === 0 ? 0 : 1;
  } finally {
    await tracing?.close(SPAN_FLUSH_TIMEOUT_MS);
    await log.close(LOG_FLUSH_TIMEOUT_MS);
    hangUp.restoreDefault();
  }
}

/** A signal that came during the start is delivered within two turns of the event loop. */
async function wasStopped(stop: AbortSignal): Promise<boolean> {
  await setImmediate();
  await setImmediate();
  return stop.aborted;
}

/** When the environment asks for it. */
function openTracingFor({ credentials }: Config, version: string, { observe, secrets: { mask } }: Log) {
  const servers = credentials.map(({ name, auth }) => [name, authorizationServerUrl(auth)] as const);
  const tokenServers = new Map(servers.filter((entry): entry is [string, URL] => entry[1] !== undefined));
  return openTracing({ env: process.env, version, tokenServers, clock: systemClock, mask, observe });
}
