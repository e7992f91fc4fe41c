/** The generated parts of docs/partners.md: an example for each kind of partner, and the settings of each partner. Pure. */
import { parse, stringify } from 'yaml';
import { KEY_PARTNERS } from './key-partners.ts';
import { OAUTH_PARTNERS } from './oauth-partners.ts';
import { OWN_FORM_PARTNERS } from './own-form-partners.ts';
import type { PartnerShape } from './partner-shape.ts';
import { selectSettings } from './partner-settings.ts';
import type { PartnerSettings, Section } from './partner-settings.ts';
import { UNSERVED_OAUTH_PARTNERS, UNSERVED_OWN_FORM_PARTNERS } from './unserved-partners.ts';

/** Relative to the project's folder. */
export const PARTNER_PAGE = 'docs/partners.md';

interface Kind {
  readonly title: string;
  /** The partner of the example. */
  readonly key: string;
  /** The settings of the kind; counted are the partners that need one of them. */
  readonly settings: readonly string[];
}

const KINDS: readonly Kind[] = [
  { title: 'A JSON body', key: 'auth0-cc', settings: ['auth.bodyFormat'] },
  { title: 'Another grant, or none', key: 'zoom-cc', settings: ['auth.grantType'] },
  { title: 'Parameters of its own instead of client id and secret', key: 'toast', settings: ['auth.extraParameters'] },
  { title: 'A further header field in the token request', key: 'altrata', settings: ['auth.extraHeaders'] },
  {
    title: 'Another name or unit in the token response',
    key: 'fiserv',
    settings: ['auth.tokenField', 'auth.expiresInField', 'auth.expiresInUnit'],
  },
  {
    title: 'A signed assertion instead of a secret',
    key: 'google-service-account',
    settings: ['auth.privateKeyFile', 'auth.assertionClaims'],
  },
  {
    title: 'The token in another header field',
    key: 'shopify-cc',
    settings: ['upstream.tokenHeader', 'upstream.tokenPrefix'],
  },
  { title: 'A fixed header field in each call', key: 'sap-ariba', settings: ['upstream.headers'] },
  { title: 'A fixed key and no token request', key: 'datadog', settings: ['auth.method: static', 'auth.tokenFile'] },
];

const SERVED = [...OAUTH_PARTNERS, ...OWN_FORM_PARTNERS];
const ALL = [...SERVED, ...KEY_PARTNERS];
const DOCUMENTED = {
  fill: (text: string) => text,
  fileOf: (name: string) => `/run/secrets/${name.replace(/[^a-z.]+/gi, '-')}`,
};

/** The sections of the page by name. */
export function renderPartnerPage(): Readonly<Record<string, string>> {
  const all = SERVED.length + UNSERVED_OAUTH_PARTNERS.length + UNSERVED_OWN_FORM_PARTNERS.length;
  return {
    counts: `Of ${all} partners, ${SERVED.length} are served: ${describeShare(OAUTH_PARTNERS, UNSERVED_OAUTH_PARTNERS)} with the client-credentials grant, and ${describeShare(OWN_FORM_PARTNERS, UNSERVED_OWN_FORM_PARTNERS)} with a token request of their own form.`,
    kinds: renderKinds(),
    usual: renderUsual(),
    partners: renderPartners('settings', SERVED.filter((shape) => !isUsual(shape)).map(renderRow)),
    keys: renderPartners('settings', KEY_PARTNERS.map(renderRow)),
    unserved: renderPartners(
      'why not',
      [...UNSERVED_OAUTH_PARTNERS, ...UNSERVED_OWN_FORM_PARTNERS].map(({ name, obstacles }) => [
        name,
        obstacles.join('; '),
      ]),
    ),
  };
}

function describeShare(served: readonly unknown[], unserved: readonly unknown[]): string {
  return `${served.length} of ${served.length + unserved.length}`;
}

function renderKinds(): string {
  const head = ['the partner wants', 'settings', 'partners here'];
  const rows = KINDS.map(({ title, settings }) => [
    `[${title}](#${title.toLowerCase().replaceAll(',', '').replaceAll(' ', '-')})`,
    settings.map((setting) => `\`${setting}\``).join(', '),
    String(countPartners(settings)),
  ]);
  return [renderTable(head, rows), ...KINDS.map(renderKind)].join('\n\n');
}

function countPartners(settings: readonly string[]): number {
  return ALL.filter((shape) => {
    const sections: PartnerSettings = selectSettings(shape, DOCUMENTED);
    const used = Object.entries(sections).flatMap(([name, section]) =>
      Object.keys(section as Section).map((key) => `${name}.${key}`),
    );
    return settings.some((setting) => used.includes(setting));
  }).length;
}

function renderKind({ title, key }: Kind): string {
  const example = ALL.find((shape) => shape.key === key);
  if (example === undefined) throw new Error(`no partner ${key}`);
  return [`### ${title}`, '', `${example.name}:`, '', '```yaml', renderExample(example), '```'].join('\n');
}

function renderExample(shape: PartnerShape): string {
  const { auth, upstream } = selectSettings(shape, DOCUMENTED);
  const endpoint = shape.request && { url: 'https://login.partner.example', tokenPath: shape.request.target };
  return stringify(
    {
      upstream: { baseUrl: 'https://api.partner.example', ...upstream },
      auth: { ...endpoint, ...clientOf(shape), ...auth },
    },
    { lineWidth: 0, singleQuote: true },
  ).trimEnd();
}

function clientOf({ request }: PartnerShape): Section {
  if (request === undefined || (request.client === 'none' && request.assertion === undefined)) return {};
  const clientId = { clientId: '<client id>' };
  return request.client.startsWith('client_secret')
    ? { ...clientId, clientSecretFile: '/run/secrets/client-secret' }
    : clientId;
}

/** Those who need the method and the body format at most, in one line for each combination. */
function renderUsual(): string {
  const groups = Map.groupBy(SERVED.filter(isUsual), describeSettings);
  return [...groups]
    .map(
      ([settings, shapes]) =>
        `- ${settings === '' ? 'the defaults, `auth: { method: client_secret_basic }`' : settings}: ${shapes.map(nameAll).join(', ')}.`,
    )
    .join('\n');
}

function isUsual(shape: PartnerShape): boolean {
  const { auth, upstream } = selectSettings(shape, DOCUMENTED);
  const isMethod = Object.keys(auth).every(
    (key) => key === 'bodyFormat' || (key === 'method' && auth.method === 'client_secret_post'),
  );
  return isMethod && Object.keys(upstream).length === 0;
}

function renderRow(shape: PartnerShape): readonly string[] {
  const remark = shape.remark === undefined ? '' : `; ${shape.remark}`;
  return [nameAll(shape), `${describeSettings(shape) || 'the defaults'}${remark}`];
}

function nameAll({ name, also }: PartnerShape): string {
  return also.length === 0 ? name : `${name} (also ${also.join(', ')})`;
}

function describeSettings(shape: PartnerShape): string {
  const { auth, upstream }: PartnerSettings = selectSettings(shape, DOCUMENTED);
  const query = shape.request?.target.split('?')[1];
  const sections = { auth: { ...(query === undefined ? {} : { tokenPath: `…?${query}` }), ...auth }, upstream };
  return Object.entries(sections)
    .filter(([, section]) => Object.keys(section).length > 0)
    .map(([name, section]) => `\`${name}: ${renderSection(section)}\``)
    .join(' ');
}

/** In one line; what is in files is left out. */
function renderSection(section: Section): string {
  const members = Object.entries(section).map(([key, value]) => {
    if (typeof value === 'object')
      return `${key}: { ${Object.entries(value)
        .map(([name, one]) => `${name}: ${renderText(one)}`)
        .join(', ')} }`;
    return `${key}: ${renderText(value)}`;
  });
  return `{ ${members.join(', ')} }`;
}

function renderText(value: Section[string]): string {
  if (typeof value === 'object' || (typeof value === 'string' && value.startsWith('/run/secrets/'))) return '…';
  // Quotes where YAML would read another value, such as a boolean.
  return parse(String(value)) === value ? String(value) : `'${value}'`;
}

/** In the order of the alphabet. */
function renderPartners(what: string, rows: readonly (readonly string[])[]): string {
  return renderTable(
    ['partner', what],
    rows.toSorted(([a = ''], [b = '']) => a.localeCompare(b, 'en')),
  );
}

function renderTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  return [head, head.map(() => '---'), ...rows].map((row) => `| ${row.join(' | ')} |`).join('\n');
}
