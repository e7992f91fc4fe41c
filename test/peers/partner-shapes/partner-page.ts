/** The generated parts of docs/partners.md: the kinds of partners, one example, and the settings of each partner. Pure. */
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

/** What a partner may ask for: the settings that provide it, and the key of a partner that needs them. */
type Kind = readonly [title: string, settings: string, key: string];

const KINDS: readonly Kind[] = [
  ['a JSON body', '`auth.bodyFormat`', 'auth0-cc'],
  ['another grant, or none', '`auth.grantType`', 'zoom-cc'],
  ['its own parameters instead of client id and secret', '`auth.extraParameters`', 'toast'],
  ['an additional header field in the token request', '`auth.extraHeaders`', 'altrata'],
  ['another member name for the token in its response', '`auth.tokenField`', 'toast'],
  ['another member name or unit for the lifetime', '`auth.expiresInField`, `auth.expiresInUnit`', 'fiserv'],
  ['a signed assertion instead of a secret', '`auth.privateKeyFile`, `auth.assertionClaims`', 'google-service-account'],
  ['the token in another header field', '`upstream.tokenHeader`, `upstream.tokenPrefix`', 'shopify-cc'],
  ['a fixed header field in each call', '`upstream.headers`', 'sap-ariba'],
  ['a fixed key, without a token request', '`auth.method: static`, `auth.tokenFile`', 'datadog'],
  ['a fixed key in the query', '`auth.method: static`, `upstream.query`', 'google-maps'],
];

/** The partner of the example: it needs several kinds of settings. */
const EXAMPLE = 'toast';

/** Settings of `auth` that many partners need. A partner is listed at the first that it needs as a whole; the last fits every one. */
const COMMON: readonly Section[] = [
  { method: 'none', grantType: '', bodyFormat: 'json' },
  { method: 'client_secret_post' },
  { method: 'none' },
  {},
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
    kinds: KINDS.map(([title, settings, key]) => `- ${title}: ${settings} (${findShape(key).name})`).join('\n'),
    example: ['```yaml', renderExample(findShape(EXAMPLE)), '```'].join('\n'),
    usual: renderUsual(),
    partners: renderFurther(SERVED.filter((shape) => !isUsual(shape))),
    keys: renderPartners(KEY_PARTNERS, selectSettings(KEY_PARTNERS[0]!, DOCUMENTED).auth),
    unserved: renderUnserved(),
  };
}

function describeShare(served: readonly unknown[], unserved: readonly unknown[]): string {
  return `${served.length} of ${served.length + unserved.length}`;
}

function findShape(key: string): PartnerShape {
  const shape = ALL.find((candidate) => candidate.key === key);
  if (shape === undefined) throw new Error(`no partner ${key}`);
  return shape;
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
  const groups = Map.groupBy(SERVED.filter(isUsual), (shape) => describeSettings(shape, {}));
  return [...groups]
    .map(([settings, shapes]) => `- ${settings === '' ? 'no setting' : settings}: ${shapes.map(nameAll).join(', ')}.`)
    .join('\n');
}

function isUsual(shape: PartnerShape): boolean {
  const { auth, upstream } = selectSettings(shape, DOCUMENTED);
  const isMethod = Object.keys(auth).every(
    (key) => key === 'bodyFormat' || (key === 'method' && auth.method === 'client_secret_post'),
  );
  return isMethod && Object.keys(upstream).length === 0;
}

/** A list for each of the common settings. */
function renderFurther(shapes: readonly PartnerShape[]): string {
  const groups = Map.groupBy(shapes, (shape) => {
    const { auth } = selectSettings(shape, DOCUMENTED);
    return COMMON.find((common) => Object.entries(common).every(([key, value]) => auth[key] === value))!;
  });
  return COMMON.map((common) => {
    const title = common === COMMON.at(-1) ? 'Others' : `In addition to ${describeSection('auth', common).join(', ')}`;
    return `${title}:\n\n${renderPartners(groups.get(common) ?? [], common)}`;
  }).join('\n\n');
}

/** One line for partners with the same settings, in the order of the alphabet. @param common settings of `auth` that are not repeated */
function renderPartners(shapes: readonly PartnerShape[], common: Section): string {
  const groups = Map.groupBy(shapes, (shape) => describeRow(shape, common));
  const lines = [...groups].map(([settings, alike]) => `- ${sortNames(alike.map(nameAll)).join(', ')}: ${settings}`);
  return sortNames(lines).join('\n');
}

function describeRow(shape: PartnerShape, common: Section): string {
  const remark = shape.remark === undefined ? '' : `; ${shape.remark}`;
  return `${describeSettings(shape, common) || 'nothing'}${remark}`;
}

/** One line for each obstacle; a partner may have several. */
function renderUnserved(): string {
  const partners = [...UNSERVED_OAUTH_PARTNERS, ...UNSERVED_OWN_FORM_PARTNERS];
  const pairs = partners.flatMap(({ name, obstacles }) => obstacles.map((obstacle) => ({ name, obstacle })));
  return [...Map.groupBy(pairs, ({ obstacle }) => obstacle)]
    .map(([obstacle, members]) => `- ${obstacle}: ${sortNames(members.map(({ name }) => name)).join(', ')}`)
    .join('\n');
}

function sortNames(names: readonly string[]): readonly string[] {
  return names.toSorted((a, b) => a.localeCompare(b, 'en'));
}

function nameAll({ name, also }: PartnerShape): string {
  return also.length === 0 ? name : `${name} (also ${also.join(', ')})`;
}

function describeSettings(shape: PartnerShape, common: Section): string {
  const { auth, upstream }: PartnerSettings = selectSettings(shape, DOCUMENTED);
  const query = shape.request?.target.split('?')[1];
  const own = Object.fromEntries(Object.entries(auth).filter(([key]) => !(key in common)));
  const sections = { auth: { ...(query === undefined ? {} : { tokenPath: `…?${query}` }), ...own }, upstream };
  return Object.entries(sections)
    .flatMap(([name, section]) => describeSection(name, section))
    .join(', ');
}

/** One code span for each setting. */
function describeSection(name: string, section: Section): string[] {
  const { tokenHeader, tokenPrefix = 'Bearer ', ...others } = section;
  // In another field than Authorization a token seldom has a prefix.
  const rare = tokenPrefix === '' ? {} : { tokenPrefix };
  const shown = tokenHeader === undefined ? section : { tokenHeader, ...rare, ...others };
  return Object.entries(shown).map(([key, value]) => `\`${name}.${renderMember(key, value)}\``);
}

/** Values of the user's own are left out. */
function renderMember(key: string, value: Section[string]): string {
  if (typeof value !== 'object') return isFile(value) ? key : `${key}: ${renderText(value)}`;
  const members = Object.entries(value).map(([name, member]) =>
    typeof member === 'object' ? name : `${name}: ${renderText(member)}`,
  );
  return `${key}: {${members.join(', ')}}`;
}

function isFile(value: string | number): boolean {
  return typeof value === 'string' && value.startsWith('/run/secrets/');
}

function renderText(value: string | number): string {
  // Quotes where YAML would read another value, such as a boolean.
  return parse(String(value)) === value ? String(value) : `'${value}'`;
}
