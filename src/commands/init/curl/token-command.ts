/**
 * What a partner's curl commands say about the token request and the API: settings of the sidecar, the client secret, what was ignored
 * and what is a placeholder (RFC 6749 §4.4.2, §2.3.1). Asks nothing and writes nothing. Pure.
 */
import { maskQuery } from '../../../platform/secret-redaction.ts';
import { splitTokenUrl } from '../../../token/endpoint/token-url.ts';
import { extraHeaderNameFault, upstreamHeaderNameFault } from '../../../config/schema/formats/credentials.ts';
import { TOKEN_SYNTAX } from '../../../token/endpoint/token-response.ts';
import type { InitSettingKey } from '../init-settings.ts';
import { hasExpansion, hasPlaceholderPart, isPlaceholder, showExpansions, showPlaceholder } from './placeholders.ts';
import type { CommandWords } from './shell-words.ts';
import {
  classifyRequest,
  findTokenRequestFault,
  KEY_HEADER,
  KEY_PARAMETER,
  SECRET_NAME,
  TOKEN_FIELDS,
} from './request-kind.ts';
import type { RequestKind } from './request-kind.ts';
import { noneIfEmpty, parseUrl, readCurlCommand, splitUser } from './curl-request.ts';
import type { Client, CurlRequest, Field } from './curl-request.ts';

export type UnderstoodCommand = Readonly<
  Pick<Derivation, 'settings' | 'secret' | 'tokenUrl' | 'ignored' | 'placeholders'>
>;

/** What a command does whose text does not show it. */
export type AssumedKind = Exclude<RequestKind, 'unclear'>;

export type CommandReading =
  | { readonly kind: 'command'; readonly command: UnderstoodCommand }
  /** `fault` follows "the pasted text" and quotes no value. Of `unclear`: an assumption is needed. */
  | { readonly kind: 'refused' | 'unclear'; readonly fault: string };

/** @param assumed of the first request that does not show its kind. Default: the result is `unclear` */
export function readTokenCommand(commands: readonly CommandWords[], assumed?: AssumedKind): CommandReading {
  const curls = commands.map(readCurlCommand);
  const found = curls.filter((curl) => curl !== undefined);
  const first = curls.findIndex((curl) => curl !== undefined);
  const isOdd = commands.some(([name = ''], at) => at > first && curls[at] === undefined && !SHELL_COMMAND.test(name));
  const fault =
    found.find((curl) => curl.fault !== undefined)?.fault ?? (first >= 0 && isOdd ? UNKNOWN_LINE : undefined);
  if (fault !== undefined) return { kind: 'refused', fault };
  const requests = found.filter(({ url }) => url !== undefined);
  if (requests.length === 0)
    return { kind: 'refused', fault: found.length === 0 ? 'has no curl command' : 'has a curl command without a URL' };
  const kinds = new Map(requests.map((request) => [request, classifyRequest(request)]));
  const unclear = requests.find((request) => kinds.get(request) === 'unclear');
  if (unclear !== undefined && assumed !== undefined) kinds.set(unclear, assumed);
  const token = requests.find((request) => kinds.get(request) === 'token');
  if (token === undefined && unclear !== undefined && assumed === undefined)
    return { kind: 'unclear', fault: describeUnclear(unclear) };
  const tokenFault = token && (findGrantFault(token) ?? findTokenRequestFault(token));
  if (tokenFault !== undefined) return { kind: 'refused', fault: tokenFault };
  const derivation = new Derivation();
  if (token !== undefined) derivation.takeTokenRequest(token);
  const call = requests.find((request) => kinds.get(request) === 'call');
  if (call !== undefined) derivation.takeApiCall(call, token === undefined);
  return { kind: 'command', command: derivation };
}

function describeUnclear(request: CurlRequest): string {
  const fault = findTokenRequestFault(request);
  const asToken = fault === undefined ? '' : `; as a token request it is not supported, since it ${fault}`;
  return `does not show whether it requests a token (by a grant_type, by a client id and a client secret as fields, or by credentials that it posts to a path such as /oauth/token) or calls the API; run init on a terminal, which asks, or give the settings as options${asToken}`;
}

function findGrantFault({ body, query }: CurlRequest): string | undefined {
  const fields = [...body, ...query];
  const grant = fields.find(({ name }) => name === 'grant_type')?.value ?? '';
  if (/^(?:authorization_code|refresh_token|.*:device_code)$/.test(grant))
    return `requests a token by the grant ${grant}, which needs a person`;
  if (grant.endsWith(':jwt-bearer') || fields.some(({ name }) => name.startsWith('client_assertion')))
    return 'authenticates by a signed JWT (assertion), which init cannot write: write the file by hand as in docs/authorization-servers.md, with auth.method private_key_jwt or client_assertion, or auth.grantType urn:ietf:params:oauth:grant-type:jwt-bearer';
  return undefined;
}

/** Only a command of a shell may follow them. */
const SHELL_COMMAND = /^(?:[A-Za-z_]\w*=[^]*|export|echo|printf|set|jq|cat|sleep|exit|unset)$/;
const UNKNOWN_LINE =
  'has a line after the curl command that is no command; does the line before it lack a backslash at its end?';

class Derivation {
  /** Texts as in the environment. */
  readonly settings = new Map<InitSettingKey, string>();
  /** Sentences about what was left out or is sent in another way. Without values. */
  readonly ignored: string[] = [];
  /** Placeholders that stand for a value: `client secret: $CLIENT_SECRET`. */
  readonly placeholders: string[] = [];
  /** The client secret, or the token of a call without a token request. Undefined: not in the command. */
  secret: string | undefined;
  /** The token endpoint as it may be shown; undefined without a token request. */
  tokenUrl: string | undefined;

  takeTokenRequest(given: CurlRequest): void {
    const request = this.#dropPlaceholderBearer(given);
    this.#takeUrl(request);
    this.#takeCertificate('auth', request);
    this.#takeGrantFields(request);
    this.#takeClient(request);
    this.#takeExtraParameters(request.body);
    const own = request.authorization?.join('');
    const headers = own === undefined ? [] : [{ name: 'Authorization', value: own }];
    this.#takeHeaders('auth.extraHeaders', [...request.headers, ...headers], extraHeaderNameFault);
    this.ignored.push(...request.ignored);
  }

  /**
   * Takes only the origin of the URL: how much of the path belongs to every call is not known, and none is always right.
   * @param isAlone there is no token request: what authenticates the call is a token that something else renews, or HTTP Basic
   */
  takeApiCall({ url, headers, authorization, basic, ...request }: CurlRequest, isAlone: boolean): void {
    const parsed = parseUrl(url ?? '');
    if (parsed !== undefined && !hasPlaceholderPart(parsed.host)) this.settings.set('upstream.baseUrl', parsed.origin);
    this.#takeCertificate('upstream', request);
    const key = headers.find(({ name, value }) => KEY_HEADER.test(name) && (isAlone || isPlaceholder(value)));
    if (authorization !== undefined) this.#takeCarrier('Authorization', authorization, isAlone);
    // The Base64 text of id and secret is the token of every call (RFC 7617).
    else if (basic !== undefined && isAlone)
      this.#takeCarrier('Authorization', ['Basic ', basic.token ?? '<Base64 of id:secret>'], true);
    else if (key !== undefined) this.#takeCarrier(key.name, ['', key.value], isAlone);
    if (basic !== undefined && !isAlone) this.ignored.push('HTTP Basic in the API call: calls carry the token');
    const hasCarrier = authorization !== undefined || (basic !== undefined && isAlone);
    this.#takeKeyInQuery(request.query, isAlone, hasCarrier || key !== undefined);
    const fixed = headers.filter((header) => (hasCarrier || header !== key) && !/^user-agent$/i.test(header.name));
    this.#takeHeaders('upstream.headers', fixed, (name) =>
      PER_CALL_HEADER.test(name) ? 'differs in each call' : upstreamHeaderNameFault(name),
    );
    if (isAlone) this.ignored.push(...request.ignored);
  }

  /** @param hasCarrier a header field has a token, too */
  #takeKeyInQuery(query: readonly Field[], isAlone: boolean, hasCarrier: boolean): void {
    const keys = query.filter(({ name, value }) => KEY_PARAMETER.test(name) && this.#isValue(`key ${name}`, value));
    if (keys.length === 0) return;
    if (isAlone && hasCarrier) {
      const names = keys.map(({ name }) => name).join(', ');
      this.ignored.push(`${names} in the query of the call: write it into upstream.query, in a file`);
      return;
    }
    if (isAlone) this.settings.set('auth.method', 'static');
    this.settings.set('upstream.query', toJson(keys));
  }

  #takeCarrier(name: string, [prefix, token]: readonly [string, string], isAlone: boolean): void {
    if (name !== 'Authorization') this.settings.set('upstream.tokenHeader', name);
    if (prefix.toLowerCase() !== 'bearer ') this.settings.set('upstream.tokenPrefix', prefix);
    if (!isAlone) return;
    this.settings.set('auth.method', 'static');
    if (!this.#isValue('token', token)) return;
    if (TOKEN_SYNTAX.test(token)) this.secret = token;
    else this.placeholders.push('token: has characters that a token may not have');
  }

  #takeUrl({ url: text = '', query }: CurlRequest): void {
    const url = parseUrl(text);
    if (url === undefined || hasPlaceholderPart(showExpansions(text)) || hasExpansion(text)) {
      this.placeholders.push(`token URL: ${showPlaceholder(text)}`);
      return;
    }
    const parts = splitTokenUrl(url);
    this.tokenUrl = maskQuery(url);
    if (query.some(({ name }) => SECRET_NAME.test(name)))
      this.ignored.push('that a URL should hold no secret: auth.tokenPath in the configuration file has it');
    this.settings.set('auth.url', parts?.authUrl ?? url.origin);
    if (parts !== undefined) this.settings.set('auth.tokenPath', parts.tokenPath);
  }

  /** Without `--key`, the file of the certificate holds the key too. */
  #takeCertificate(section: 'auth' | 'upstream', { certificateFile, keyFile }: Partial<CurlRequest>): void {
    if (certificateFile === undefined) return;
    this.settings.set(`${section}.tlsCertificateFile`, certificateFile);
    this.settings.set(`${section}.tlsKeyFile`, keyFile ?? certificateFile);
  }

  #takeClient({ basic, body, query, headers, authorization, certificateFile }: CurlRequest): void {
    const inForm: Client = { id: lastValue(body, 'client_id'), secret: lastValue(body, 'client_secret') };
    const hasOtherProof =
      [...body, ...query].some(({ name }) => !TOKEN_FIELDS.has(name)) ||
      query.some(({ name }) => name.startsWith('client_')) ||
      authorization !== undefined ||
      headers.some(({ name }) => KEY_HEADER.test(name));
    const isPublic = inForm.id === undefined || this.settings.has('auth.grantType');
    if (basic !== undefined) {
      if (inForm.id !== undefined || inForm.secret !== undefined)
        this.ignored.push('client_id and client_secret in the body: HTTP Basic has them already');
      this.#takePair('client_secret_basic', basic);
    } else if (inForm.secret === undefined && certificateFile !== undefined) this.#takePair('tls_client_auth', inForm);
    else if (inForm.secret !== undefined && (inForm.id !== undefined || query.length === 0))
      this.#takePair('client_secret_post', inForm);
    else if (hasOtherProof && isPublic) this.settings.set('auth.method', 'none');
    else this.#takePair(inForm.id === undefined ? 'client_secret_basic' : 'client_secret_post', inForm);
  }

  #takePair(method: 'client_secret_basic' | 'client_secret_post' | 'tls_client_auth', { id, secret }: Client): void {
    this.settings.set('auth.method', method);
    if (id !== undefined && this.#isValue('client id', id)) this.settings.set('auth.clientId', id);
    if (secret !== undefined && this.#isValue('client secret', secret)) this.secret = secret;
    if (id === undefined) this.placeholders.push('client id');
    if (secret === undefined && method !== 'tls_client_auth') this.placeholders.push('client secret');
  }

  #takeGrantFields({ body, bodyFormat }: CurlRequest): void {
    const grant = lastValue(body, 'grant_type') ?? '';
    if (grant !== 'client_credentials' && !isPlaceholder(grant)) this.settings.set('auth.grantType', grant);
    if (bodyFormat === 'json') this.settings.set('auth.bodyFormat', 'json');
    for (const name of ['audience', 'resource'] as const) {
      const values = [...new Set(listValues(body, name))].filter(
        (value) => value !== '' && this.#isValue(name, value, hasPlaceholderPart),
      );
      const [first] = values;
      if (first === undefined) continue;
      // A text that begins like a JSON array would be read as one.
      const isPlain = values.length === 1 && !first.trimStart().startsWith('[');
      this.settings.set(`auth.${name}`, isPlain ? first : JSON.stringify(values));
    }
    const scope = (lastValue(body, 'scope') ?? '').trim().replaceAll(/\s+/g, ' ');
    if (scope !== '' && this.#isValue('scope', scope, hasPlaceholderPart)) this.settings.set('auth.scope', scope);
  }

  #takeExtraParameters(body: readonly Field[]): void {
    // Fields of a client without authentication are fields like others.
    const isPublic = this.settings.get('auth.method') === 'none';
    const extra = body.filter(({ name }) => (isPublic && name.startsWith('client_')) || !TOKEN_FIELDS.has(name));
    if (body.some(({ value }) => value === '')) this.ignored.push('a form field without a value');
    const usable = extra.filter(({ name, value }) => value !== '' && this.#isValue(`form field ${name}`, value));
    if (usable.length > 0) this.settings.set('auth.extraParameters', toJson(usable));
  }

  /** A bearer token is what the request is for: its placeholder stands in documents by mistake. */
  #dropPlaceholderBearer(request: CurlRequest): CurlRequest {
    const [prefix = '', token = ''] = request.authorization ?? [];
    if (!/^bearer $/i.test(prefix) || !isPlaceholder(token)) return request;
    this.ignored.push(`Authorization: Bearer ${showPlaceholder(token)}, a placeholder: the token is what is requested`);
    return { ...request, authorization: undefined, basic: splitUser(request.user) };
  }

  #takeHeaders(
    key: 'auth.extraHeaders' | 'upstream.headers',
    headers: readonly Field[],
    nameFault: typeof extraHeaderNameFault,
  ): void {
    const extra = headers.filter(({ name, value }) => {
      const lower = name.toLowerCase();
      if (DEFAULT_HEADERS.has(lower)) return false;
      if (lower !== 'cookie' && nameFault(name) === undefined) return this.#isValue(`header ${name}`, value);
      this.ignored.push(`the header field ${/^[\w-]{1,60}$/.test(name) ? name : 'of another name'}`);
      return false;
    });
    if (extra.length > 0) this.settings.set(key, toJson(extra));
  }

  /** False, with a note, for a placeholder. */
  #isValue(what: string, value: string, isNone: (value: string) => boolean = isPlaceholder): boolean {
    if (!isNone(value)) return true;
    this.placeholders.push(`${what}: ${showPlaceholder(value)}`);
    return false;
  }
}

const PER_CALL_HEADER = /idempotency|request-?id|correlation|trace|csrf|xsrf|^if-|^range$|^origin$|^referer$/i;

/** Fields that the sidecar sends itself, or that change nothing. */
const DEFAULT_HEADERS: ReadonlySet<string> = new Set(
  'accept accept-encoding cache-control content-type content-length host connection'.split(' '),
);

function toJson(fields: readonly Field[]): string {
  return JSON.stringify(Object.fromEntries(fields.map(({ name, value }) => [name, value])));
}

function listValues(fields: readonly Field[], name: string): readonly string[] {
  return fields.filter((field) => field.name === name).map(({ value }) => value);
}

function lastValue(fields: readonly Field[], name: string): string | undefined {
  return noneIfEmpty(listValues(fields, name).at(-1));
}
