/**
 * What the sandbox says on stdout: where each part listens, one line to paste, and that it is a simulation.
 * Scripts read these lines; no secret is ever in them.
 */
import type { Sandbox } from './sandbox.ts';

/** Where the sidecar in front of the sandbox listens: `http://host:port`, or `unix:/path`. */
export interface SidecarUrls {
  readonly proxyUrl: string;
  readonly adminUrl: string;
}

const EXAMPLE_REQUEST = {
  destination: 'ES',
  startDate: '2027-07-01',
  endDate: '2027-07-14',
  travellers: [{ birthDate: '1990-05-17' }],
};

/** The lines to print, in order, without line ends. The `try` line works when pasted into a POSIX shell. */
export function formatSandboxLines(
  sandbox: Pick<Sandbox, 'tokenUrl' | 'apiUrl' | 'audience' | 'scope'>,
  places: SidecarUrls,
): readonly string[] {
  return [
    `proxy ${places.proxyUrl}`,
    `admin ${places.adminUrl}`,
    `token ${sandbox.tokenUrl.href}`,
    `api ${sandbox.apiUrl.href}`,
    `try ${formatCurlCommand(places.proxyUrl)}`,
    'note Everything behind the proxy is simulated in this process: no partner is called, nothing is sold.',
    `note Its token endpoint gives tokens for the audience ${sandbox.audience} and the scopes ${sandbox.scope}.`,
    "note The real API's paths, payloads, errors and rate limits are unknown; those here are invented.",
  ];
}

function formatCurlCommand(proxyUrl: string): string {
  const { base, options } = findCurlTarget(proxyUrl);
  const body = quoteForShell(JSON.stringify(EXAMPLE_REQUEST));
  return `curl -i ${options}-H 'Content-Type: application/json' -d ${body} ${quoteForShell(`${base}/quotes-requests`)}`;
}

function findCurlTarget(proxyUrl: string): { readonly base: string; readonly options: string } {
  if (proxyUrl.startsWith('unix:'))
    return { base: 'http://localhost', options: `--unix-socket ${quoteForShell(proxyUrl.slice('unix:'.length))} ` };
  // A wildcard address is no name to call: the sidecar's guard does not know it.
  const base = proxyUrl.replace(/\/$/, '').replace(/^(https?:\/\/)(?:0\.0\.0\.0|\[::\])(?=:|$)/, '$1localhost');
  return { base, options: '' };
}

/** One word of a POSIX shell, whatever is in it. */
function quoteForShell(text: string): string {
  return /^[\w./:-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
