/** `bearer-sidecar sandbox`: the sidecar in front of a simulated partner in the same process. */
import { loadConfig, hasConfigFile, type LoadOptions, type Preset } from '../config/load/load.ts';
import { DEFAULT_CLIENT_SETTINGS } from '../config/default-client-settings.ts';
import { formatProblems, formatWarnings } from '../config/load/problems.ts';
import { formatSandboxLines } from './sandbox-text.ts';
import { startSandbox, type Sandbox, type SandboxClient } from '../sandbox/sandbox.ts';
import { describeShutdown } from './banner.ts';
import { paintFor } from './terminal.ts';
import { openLog, breakLineOnStop } from './readable-log.ts';
import { serve } from './run.ts';

/** @returns exit code, as run */
export async function runSandbox(load: LoadOptions, version: string, stop: AbortSignal): Promise<number> {
  const sandbox = await startSandbox(readClient(load.env));
  try {
    const readConfig = () => loadConfig({ ...load, preset: presetFor(sandbox) });
    const loaded = readConfig();
    process.stderr.write(formatWarnings(loaded.warnings));
    if (!loaded.ok) {
      process.stderr.write(formatProblems(loaded.problems));
      return 2;
    }
    const { config } = loaded;
    // stdout is for the addresses, so the log goes to stderr.
    const log = openLog(config.log, process.stderr);
    return await serve({
      loaded,
      reloadConfig: hasConfigFile(load) ? readConfig : undefined,
      version,
      log,
      stop,
      onListening: ({ proxyUrl, adminUrl }) => {
        const { stdout } = process;
        const lines = formatSandboxLines(sandbox, { proxyUrl, adminUrl });
        // Scripts read these lines; the text around them is for people only.
        stdout.write(
          stdout.isTTY ? formatForTerminal(lines, version, describeShutdown(loaded)) : `${lines.join('\n')}\n`,
        );
        breakLineOnStop(config.log.format, process.stderr, stop);
      },
    });
  } finally {
    await sandbox.close();
  }
}

function formatForTerminal(lines: readonly string[], version: string, end: string): string {
  const title = paintFor(process.stdout)('heading', `bearer-sidecar ${version}: the sandbox`);
  return [title, '', ...lines, '', 'Paste the command after "try" into another terminal.', end, '', ''].join('\n');
}

/** Settings for the simulated partner; all others stay as configured. */
function presetFor(sandbox: Sandbox): Preset {
  return {
    name: 'sandbox',
    values: {
      ...DEFAULT_CLIENT_SETTINGS,
      'upstream.baseUrl': sandbox.apiUrl.href,
      'auth.url': sandbox.authUrl.origin,
      'auth.tokenPath': sandbox.tokenUrl.pathname,
      'auth.clientId': sandbox.clientId,
      'auth.clientSecret': sandbox.clientSecret,
      'auth.audience': sandbox.audience,
      'auth.scope': sandbox.scope,
    },
  };
}

/** With both variables set, the client is known, for `check` or another client of the sandbox. */
function readClient({
  SIDECAR_CLIENT_ID: id,
  SIDECAR_CLIENT_SECRET: secret,
}: LoadOptions['env']): SandboxClient | undefined {
  return id === undefined || id === '' || secret === undefined || secret === '' ? undefined : { id, secret };
}
