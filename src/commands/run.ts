/** `bearer-sidecar run`: the sidecar from its configuration, until a signal. */
import type { AuthConfig, Config } from '../config/config.ts';
import type { Loaded } from '../config/changes.ts';
import { loadConfig, namesFile, type LoadOptions, type LoadResult } from '../config/load.ts';
import { formatProblems, formatWarnings } from '../config/problems.ts';
import { redisPassword } from '../config/redis-url.ts';
import { startSidecar, type Sidecar } from '../sidecar.ts';
import { createLog, type Log } from '../telemetry/log.ts';
import { readSecret, type SecretSource } from '../token/secret-file.ts';
import { listenForHangUp } from './hang-up.ts';

/** Longest wait for log lines to leave at the end. */
const LAST_LINES_MS = 500;
const SHORTEST_EXTRA_SECRET = 12;

/** @returns exit code: 0 when nothing was cut, 1 when something was or the start failed, 2 for invalid settings */
export async function run(load: LoadOptions, version: string, stop: AbortSignal): Promise<number> {
  const loaded = loadConfig(load);
  if (!loaded.ok) {
    process.stderr.write(formatWarnings(loaded.warnings) + formatProblems(loaded.problems));
    return 2;
  }
  const { log: terms, credentials } = loaded.config;
  const log = createLog({ level: terms.level, secretsInUse: credentials.length });
  for (const warning of loaded.warnings) log.warn(warning);
  const loadAgain = namesFile(load) ? () => loadConfig(load) : undefined;
  return serve({ loaded, loadAgain, version, log, stop, onListening: () => undefined });
}

export interface ServeOptions {
  readonly loaded: Loaded;
  /** Reads the configuration again; undefined where there is no file. */
  readonly loadAgain: (() => LoadResult) | undefined;
  readonly version: string;
  readonly log: Log;
  readonly stop: AbortSignal;
  readonly onListening: (sidecar: Sidecar) => void;
}

/**
 * Serves until `stop` or until its terminal is gone, drains, and says with an exit code whether anything was cut. SIGHUP reads the
 * configuration again.
 * @throws Error in words for people when it cannot start
 */
export async function serve({ loaded, loadAgain, version, log, stop, onListening }: ServeOptions): Promise<number> {
  const hangUp = listenForHangUp();
  try {
    const { config } = loaded;
    await registerSecrets(config, log);
    const { observe, droppedLines, registerSecret, setLevel } = log;
    const sidecar = await startSidecar({
      config,
      version,
      observe,
      logLinesDropped: droppedLines,
      source: { loaded, load: loadAgain, setLogLevel: setLevel },
      withhold: registerSecret,
    });
    onListening(sidecar);
    hangUp.onReload(sidecar.reload);
    const end = AbortSignal.any([stop, hangUp.terminalGone]);
    if (!end.aborted)
      await new Promise((resolve) => {
        end.addEventListener('abort', resolve, { once: true });
      });
    return (await sidecar.drain()) === 0 ? 0 : 1;
  } finally {
    await log.close(LAST_LINES_MS);
    hangUp.ignore();
  }
}

/** A second line of defence: no secret is ever meant to reach a log line. */
async function registerSecrets({ credentials, egress, fleet }: Config, log: Log): Promise<void> {
  const redisUrl = fleet && (await read('fleet.redisUrl', fleet.redisUrl));
  const shared = redisUrl === undefined ? undefined : redisPassword(redisUrl);
  if (shared !== undefined) log.registerSecret(shared);
  for (const { password } of [egress.proxy, egress.httpProxy].filter((url) => url !== undefined))
    if (password !== '') log.registerSecret(decodeURIComponent(password));
  // Last, since only the newest few are remembered.
  for (const { auth } of credentials) await registerSecretsOf(auth, log);
}

async function registerSecretsOf(auth: AuthConfig, log: Log): Promise<void> {
  const extras = [...Object.values(auth.extraParameters), ...Object.values(auth.extraHeaders)];
  // A shorter one is hardly a secret, and masking it would shred every line.
  for (const value of extras.filter(({ length }) => length >= SHORTEST_EXTRA_SECRET)) log.registerSecret(value);
  if (!('secret' in auth.method)) return;
  const secret = await read('auth.clientSecret', auth.method.secret);
  if (secret !== undefined) log.registerSecret(secret, await read('auth.clientId', auth.clientId));
}

async function read(key: string, source: SecretSource): Promise<string | undefined> {
  const reading = await readSecret(key, source);
  return reading.kind === 'read' ? reading.value : undefined;
}
