/** The summary that `run` prints on a terminal at startup: addresses, upstreams, credentials, rates. It contains no secret. */
import type { LoadedConfig } from '../config/load/load.ts';
import type { AuthConfig, RouteConfig } from '../config/config.ts';
import { toSingleLine } from '../config/load/problems.ts';
import { MASK, maskQuery } from '../platform/secret-redaction.ts';
import type { Sidecar } from '../composition/sidecar.ts';
import type { Paint } from './terminal.ts';

/** Where the sidecar listens: `http://host:port`, or `unix:/path`. */
export type SidecarUrls = Pick<Sidecar, 'proxyUrl' | 'adminUrl'>;

const NAME_WIDTH = 9;
const MAX_COLUMN_WIDTH = 48;
const MARGIN = 2;
const GAP = 2;
const MAX_ROUTES = 8;

type TerminalStyle = Readonly<{ paint: Paint; columns: number }>;

type Row = Readonly<Record<'name' | 'text' | 'remark', string>>;

export function describeStartup(
  loaded: LoadedConfig,
  version: string,
  urls: SidecarUrls,
  { paint, columns }: TerminalStyle,
): string {
  const { routes, credentials } = loaded.config;
  const page = urls.adminUrl.startsWith('unix:') ? urls.adminUrl : `${urls.adminUrl.replace(/\/$/, '')}/`;
  const rows: Row[] = [
    { name: 'proxy', text: urls.proxyUrl, remark: 'your application calls this' },
    ...routes.slice(0, MAX_ROUTES).map((route) => createRouteRow(route, routes.length === 1)),
    ...credentials.map(({ name, auth }) => ({
      name: credentials.length === 1 ? 'token' : `token ${name}`,
      text: describeEndpoint(auth),
      remark: name === 'default' ? describeCredentialOrigin(loaded) : '',
    })),
    { name: 'status', text: page, remark: 'metrics, probes and a status page' },
  ];
  const rest = routes.length - MAX_ROUTES;
  if (rest > 0) rows.splice(1 + MAX_ROUTES, 0, { name: '', text: '', remark: `and ${rest} more routes` });
  const title = paint('heading', `bearer-sidecar ${version}`);
  return [title, '', ...alignRows(rows, { paint, columns }), '', `  ${describeShutdown(loaded)}`, '', ''].join('\n');
}

/** Aligns columns before they are coloured. A long text moves only its own remark; a remark that does not fit gets its own line. */
function alignRows(rows: readonly Row[], { paint, columns }: TerminalStyle): string[] {
  const width = Math.max(NAME_WIDTH, ...rows.map(({ name }) => name.length));
  const wide = Math.max(...rows.map(({ text }) => text.length).filter((length) => length <= MAX_COLUMN_WIDTH));
  return rows.map(({ name, text, remark }) => {
    const named = `${paint('quiet', name.padEnd(width))} ${paint('name', toSingleLine(text))}`;
    const gap = Math.max(0, wide - text.length) + GAP;
    const isFitting = MARGIN + width + 1 + text.length + gap + remark.length <= columns;
    const between = isFitting ? ' '.repeat(gap) : `\n${' '.repeat(MARGIN + width + 1)}`;
    return `${' '.repeat(MARGIN)}${named}${between}${paint('quiet', toSingleLine(remark))}`.trimEnd();
  });
}

export function describeShutdown({ config: { shutdown } }: LoadedConfig): string {
  return `Ctrl-C drains: open requests have ${shutdown.drainMs / 1000} s to finish; Ctrl-C again stops at once.`;
}

function createRouteRow({ name, pathPrefix, upstream, throttle: { rate } }: RouteConfig, isOnly: boolean): Row {
  const rateText = rate === 'auto' ? 'rate learned from its responses' : `at most ${rate} calls per second`;
  return isOnly && pathPrefix === '/'
    ? { name: 'upstream', text: upstream.baseUrl.href, remark: rateText }
    : { name: 'route', text: `${pathPrefix} → ${upstream.baseUrl.href}`, remark: `${name}, ${rateText}` };
}

function describeEndpoint({ endpoint }: AuthConfig): string {
  if (endpoint.kind === 'file') return `read from ${endpoint.path}`;
  return endpoint.kind === 'url' ? maskQuery(endpoint.url) : `found through ${endpoint.issuer}`;
}

/** The origins of client id and secret, never their values. */
function describeCredentialOrigin({ effective }: LoadedConfig): string {
  const describe = (name: string, key: 'auth.clientId' | 'auth.clientSecret'): readonly string[] => {
    const file = effective.get(`${key}File`)?.value;
    if (typeof file === 'string') return [`${name} from ${file}`];
    return (effective.get(key)?.value ?? null) === null ? [] : [`${name} ${MASK}`];
  };
  return [...describe('client', 'auth.clientId'), ...describe('secret', 'auth.clientSecret')].join(', ');
}
