/** The settings by which a user serves a partner (partner-shape.ts), besides URLs, client id and secret. Pure. */
import type { AssertionShape, PartnerShape } from './partner-shape.ts';

/** A value in a configuration file: a text, or the file that holds it. */
export type SettingText = string | { readonly file: string };

/** Settings of a section, by key. */
export type Section = Readonly<Record<string, string | number | Readonly<Record<string, SettingText>>>>;

export interface PartnerSettings {
  readonly auth: Section;
  readonly upstream: Section;
}

/** Where the customer keeps what `<name>` stands for. */
export interface CustomerFiles {
  /** The text with the customer's own values. */
  readonly fill: (text: string) => string;
  /** A file that holds a filled text; `name` says what it is. */
  readonly fileOf: (name: string, text: string) => string;
}

const PLACEHOLDER = /<[^>]+>/g;

/** Whether a text has values of the customer. */
export function hasPlaceholder(text: string): boolean {
  return text.search(PLACEHOLDER) >= 0;
}

/** Replaces each `<name>`. */
export function replacePlaceholders(text: string, valueOf: (name: string) => string): string {
  return text.replaceAll(PLACEHOLDER, (name) => valueOf(name.slice(1, -1)));
}

/** Only what differs from the defaults. */
export function selectSettings(shape: PartnerShape, files: CustomerFiles): PartnerSettings {
  return { auth: selectAuth(shape, files), upstream: selectUpstream(shape.call, files) };
}

function selectAuth({ request, response, call }: PartnerShape, files: CustomerFiles): Section {
  if (request === undefined)
    return call.tokenField === undefined
      ? { method: 'static' }
      : { method: 'static', tokenFile: files.fileOf('token', '<token>') };
  const { grant_type: grant = '', audience, scope, resource, ...extra } = request.parameters;
  const { expiry, lifetimeMs, tokenField } = response;
  return {
    ...unless('client_secret_basic', { method: request.client }),
    ...unless('client_credentials', { grantType: grant }),
    ...unless('form', { bodyFormat: request.format }),
    ...(audience === undefined ? {} : { audience: files.fill(audience) }),
    ...(scope === undefined ? {} : { scope: files.fill(scope) }),
    ...(resource === undefined ? {} : { resource: files.fill(resource) }),
    ...selectSecrets('extraParameters', extra, files),
    ...selectSecrets('extraHeaders', request.fields, files),
    ...(request.assertion === undefined ? {} : selectAssertion(request.assertion, files)),
    ...(request.needsCertificate ? selectCertificate(files) : {}),
    ...unless('access_token', { tokenField }),
    ...(expiry === undefined || expiry.unit === 'date' ? {} : unless('expires_in', { expiresInField: expiry.field })),
    ...(expiry?.unit === 'milliseconds' ? { expiresInUnit: expiry.unit } : {}),
    ...(lifetimeMs === undefined ? {} : { defaultLifetimeMs: lifetimeMs }),
  };
}

function selectUpstream(
  { tokenField = 'Authorization', prefix, fields, query }: PartnerShape['call'],
  files: CustomerFiles,
): Section {
  return {
    ...unless('Authorization', { tokenHeader: tokenField }),
    ...unless('Bearer ', { tokenPrefix: prefix }),
    ...selectSecrets('headers', fields, files),
    ...selectSecrets('query', query, files),
  };
}

function selectAssertion(assertion: AssertionShape, { fill, fileOf }: CustomerFiles): Section {
  const { algorithm, audience, claims, hasKeyId, hasThumbprint } = assertion;
  return {
    privateKeyFile: fileOf('private-key.pem', ''),
    ...(hasKeyId ? { keyId: fill('<key id>') } : {}),
    // The others are those that the key itself says.
    ...(algorithm === 'PS256' ? { signingAlgorithm: algorithm } : {}),
    ...(hasThumbprint ? { certificateFile: fileOf('certificate.pem', '') } : {}),
    ...(audience === undefined ? {} : { assertionAudience: fill(audience) }),
    ...(Object.keys(claims).length === 0 ? {} : { assertionClaims: mapValues(claims, (claim) => fill(claim)) }),
  };
}

function selectCertificate({ fileOf }: CustomerFiles): Section {
  return { tlsCertificateFile: fileOf('client.pem', ''), tlsKeyFile: fileOf('client.key', '') };
}

/** A map of secrets; what the customer keeps is in files. */
function selectSecrets(key: string, texts: Readonly<Record<string, string>>, { fileOf }: CustomerFiles): Section {
  if (Object.keys(texts).length === 0) return {};
  return { [key]: mapValues(texts, (text, name) => (hasPlaceholder(text) ? { file: fileOf(name, text) } : text)) };
}

function mapValues<T>(
  texts: Readonly<Record<string, string>>,
  toValue: (text: string, name: string) => T,
): Readonly<Record<string, T>> {
  return Object.fromEntries(Object.entries(texts).map(([name, text]) => [name, toValue(text, name)]));
}

/** The one setting, unless it has its default. */
function unless(defaultValue: string, setting: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  return Object.values(setting)[0] === defaultValue ? {} : setting;
}
