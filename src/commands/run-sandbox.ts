/** `bearer-sidecar sandbox`: the sidecar in front of a simulated partner in the same process. */
import { loadConfig, hasConfigFile, type LoadOptions, type Preset } from '../config/load/load.ts';
import { DEFAULT_CLIENT_SETTINGS } from '../config/default-client-settings.ts';
import { formatProblems, formatWarnings, type ConfigProblem } from '../config/load/problems.ts';
import { trustOnly } from '../platform/tls.ts';
import { startSandbox, type Sandbox } from '../sandbox/sandbox.ts';
import { describeShutdown, type SidecarUrls } from './banner.ts';
import { quoteForShell } from './program-command.ts';
import { readScenario } from './read-scenario.ts';
import { paintFor } from './terminal.ts';
import { openLog, breakLineOnStop } from './readable-log.ts';
import { serve } from './run.ts';

const EXAMPLE_REQUEST = {
  destination: 'ES',
  startDate: '2027-07-01',
  endDate: '2027-07-14',
  travellers: [{ birthDate: '1990-05-17' }],
};

/** @param scenarioFile default: a friendly partner */
export async function runSandbox(
  load: LoadOptions,
  scenarioFile: string | undefined,
  version: string,
  stop: AbortSignal,
): Promise<number> {
  const problems: ConfigProblem[] = [];
  const scenario = scenarioFile === undefined ? undefined : readScenario(scenarioFile, problems);
  const { SIDECAR_CLIENT_ID: id = '', SIDECAR_CLIENT_SECRET: secret = '' } = load.env;
  // With both variables set, the client is known, for `check` or another client of the sandbox.
  const sandbox = await startSandbox(id === '' || secret === '' ? undefined : { id, secret }, scenario);
  trustOnly(sandbox.certificate);
  try {
    const readConfig = () => loadConfig({ ...load, preset: presetFor(sandbox) });
    const loaded = readConfig();
    process.stderr.write(formatWarnings(loaded.warnings));
    if (!loaded.ok || problems.length > 0) {
      process.stderr.write(formatProblems(problems.concat(loaded.ok ? [] : loaded.problems)));
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
  const last = lines.at(-1) ?? '';
  const how = 'Paste the command after "try" into another terminal:';
  return [title, '', ...lines.slice(0, -1), '', end, '', how, '', last, '', ''].join('\n');
}

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

/** The lines for stdout, which scripts read; no secret is in them. The last one, `try`, works when pasted into a POSIX shell. */
export function formatSandboxLines(
  sandbox: Pick<Sandbox, 'tokenUrl' | 'apiUrl' | 'certificateUrl' | 'audience' | 'scope'>,
  urls: SidecarUrls,
): readonly string[] {
  return [
    `proxy ${urls.proxyUrl}`,
    `admin ${urls.adminUrl}`,
    `token ${sandbox.tokenUrl.href}`,
    `api ${sandbox.apiUrl.href}`,
    'note Everything behind the proxy is simulated in this process: no partner is called, nothing is sold.',
    `note Its token endpoint gives tokens for the audience ${sandbox.audience} and the scopes ${sandbox.scope}.`,
    `note Other clients trust its certificate, which is of this start: curl -sko ca.pem ${sandbox.certificateUrl.href}`,
    "note The real API's paths, payloads, errors and rate limits are unknown; those here are invented.",
    `try ${formatCurlCommand(urls.proxyUrl)}`,
  ];
}

function formatCurlCommand(proxyUrl: string): string {
  const [, socket] = /^unix:(.*)$/s.exec(proxyUrl) ?? [];
  const options = socket === undefined ? '' : `--unix-socket ${quoteForShell(socket)} `;
  // The sidecar's guard refuses a wildcard address as Host.
  const url = proxyUrl.replace(/\/$/, '').replace(/^(https?:\/\/)(?:0\.0\.0\.0|\[::\])(?=:|$)/, '$1localhost');
  const base = socket === undefined ? url : 'http://localhost';
  const body = quoteForShell(JSON.stringify(EXAMPLE_REQUEST));
  return `curl -i ${options}-H 'Content-Type: application/json' -d ${body} ${quoteForShell(`${base}/quotes-requests`)}`;
}
