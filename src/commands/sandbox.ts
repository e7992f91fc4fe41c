/** `bearer-sidecar sandbox`: a simulated partner in this process and the sidecar in front of it; nothing to configure. */
import { loadConfig, hasConfigFile, type LoadOptions, type Preset } from '../config/load/load.ts';
import { DEFAULT_CLIENT_SETTINGS } from '../config/default-client-settings.ts';
import { formatProblems, formatWarnings } from '../config/load/problems.ts';
import { formatSandboxLines } from './sandbox-text.ts';
import { startSandbox, type Sandbox, type SandboxOptions } from '../sandbox/sandbox.ts';
import { describeShutdown } from './banner.ts';
import { logSamplingOptions } from './observability.ts';
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
    // Standard output is for the addresses; the log goes where it does not mix with them.
    const log = openLog(config.log.format, process.stderr, {
      level: config.log.level,
      sampling: logSamplingOptions(config),
    });
    return await serve({
      loaded,
      reloadConfig: hasConfigFile(load) ? readConfig : undefined,
      version,
      log,
      stop,
      onListening: ({ proxyUrl, adminUrl }) => {
        const { stdout } = process;
        const lines = formatSandboxLines(sandbox, { proxyUrl, adminUrl });
        // Scripts read these lines as they are; what is for people alone stands around them.
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
  return [title, '', ...lines, '', 'Paste what follows "try" into another terminal.', end, '', ''].join('\n');
}

/** The simulated partner as the one to call; everything else stays as configured. */
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

/** Whoever sets the two variables knows the client, and can run `check` or an own client against the sandbox. */
function readClient({ SIDECAR_CLIENT_ID: id, SIDECAR_CLIENT_SECRET: secret }: LoadOptions['env']): SandboxOptions {
  return id === undefined || id === '' || secret === undefined || secret === '' ? {} : { client: { id, secret } };
}
