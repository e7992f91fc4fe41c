/** The lines that the sandbox prints to stdout. Scripts read them; they hold no secret. */
import type { Sandbox } from '../sandbox/sandbox.ts';
import type { SidecarUrls } from './banner.ts';
import { quoteForShell } from './shell-quote.ts';

const EXAMPLE_REQUEST = {
  destination: 'ES',
  startDate: '2027-07-01',
  endDate: '2027-07-14',
  travellers: [{ birthDate: '1990-05-17' }],
};

/** The lines to print, in order, without line ends. The `try` line works when pasted into a POSIX shell. */
export function formatSandboxLines(
  sandbox: Pick<Sandbox, 'tokenUrl' | 'apiUrl' | 'audience' | 'scope'>,
  urls: SidecarUrls,
): readonly string[] {
  return [
    `proxy ${urls.proxyUrl}`,
    `admin ${urls.adminUrl}`,
    `token ${sandbox.tokenUrl.href}`,
    `api ${sandbox.apiUrl.href}`,
    `try ${formatCurlCommand(urls.proxyUrl)}`,
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
  // The sidecar's guard refuses a wildcard address as Host.
  const base = proxyUrl.replace(/\/$/, '').replace(/^(https?:\/\/)(?:0\.0\.0\.0|\[::\])(?=:|$)/, '$1localhost');
  return { base, options: '' };
}
