/**
 * One stub for all partners, each below a path of its own. It is strict: a token request or a call that differs from the shape in anything
 * is refused, and noted as a fault. It is no test of the partners themselves.
 */
import { createHash, randomBytes } from 'node:crypto';
import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { text } from 'node:stream/consumers';
import { closeServer, listenOnLoopback } from '../../support/loopback.ts';
import { registerSecret } from '../../support/secrets.ts';
import { contentOf } from '../../support/witness.ts';
import type { Customer, Keys } from './customer.ts';
import { findTokenRequestFaults } from './token-request-check.ts';

export interface PartnerServer extends AsyncDisposable {
  /** The partner's base URL for token requests and, below `CALLS_PATH`, for calls. */
  readonly urlOf: (customer: Customer) => string;
  /** What differed in requests for the customer, one line each. */
  readonly faultsOf: (customer: Customer) => readonly string[];
}

/** No token endpoint is below it. */
export const CALLS_PATH = '/upstream';

/** The application's own query in each call. */
export const CLIENT_QUERY = 'filter%5bname%5d=a+b&page=2';

/** The digests of a call's body, and of the body of its response, as the partner knows them. */
export const DIGEST_FIELDS = { received: 'x-received-sha256', sent: 'x-sent-sha256' };

/** What is known about one customer. */
interface Account {
  readonly customer: Customer;
  readonly tokens: Set<string>;
  readonly faults: string[];
}

const LIFETIME_S = 3600;

export async function startPartnerServer(customers: readonly Customer[], keys: Keys): Promise<PartnerServer> {
  const accounts = new Map<string, Account>();
  for (const customer of customers) {
    // The partner has given the key that is in the file.
    const tokens = customer.shape.request === undefined ? [customer.fill('<token>')] : [];
    accounts.set(customer.name, { customer, tokens: new Set(tokens), faults: [] });
  }
  const handle = (message: IncomingMessage, response: ServerResponse): void => {
    const [, name = '', rest = ''] = /^\/([^/]+)(\/.*)$/.exec(message.url ?? '') ?? [];
    const account = accounts.get(name);
    if (account === undefined) return void response.writeHead(404).end();
    const served = rest.startsWith(CALLS_PATH)
      ? takeCall(account, message, response)
      : giveToken(account, rest, urlOf(account.customer), keys, message, response);
    // The client left within its body.
    served.catch(() => message.destroy());
  };
  const { key, cert, ca } = keys.tls;
  const plain = createServer(handle);
  const tls = createTlsServer({ key, cert, ca, requestCert: true, rejectUnauthorized: true }, handle);
  const [plainUrl, tlsUrl] = [await listenOnLoopback(plain), await listenOnLoopback(tls)];
  const urlOf = ({ shape, name }: Customer): string =>
    `${shape.request?.needsCertificate === true ? tlsUrl.replace('http:', 'https:') : plainUrl}/${name}`;
  return {
    urlOf,
    faultsOf: ({ name }) => accounts.get(name)?.faults ?? [],
    [Symbol.asyncDispose]: async () => {
      await Promise.all([closeServer(plain), closeServer(tls)]);
    },
  };
}

async function giveToken(
  account: Account,
  target: string,
  url: string,
  keys: Keys,
  message: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { customer, tokens } = account;
  const expected = customer.fill(customer.shape.request?.target ?? '');
  const received = { method: message.method ?? '', headers: message.headers, body: await text(message) };
  const found = [
    ...(target === expected ? [] : ['another path or query']),
    ...(await findTokenRequestFaults({ ...received, url: url + expected }, customer, keys)),
  ];
  if (found.length > 0) {
    refuse(account, 'token request', found, response);
    return;
  }
  const token = `token-${randomBytes(12).toString('hex')}`;
  registerSecret('an access token', token);
  tokens.add(token);
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(formToken(customer, token)));
}

function formToken({ shape: { response } }: Customer, token: string): Record<string, unknown> {
  const { tokenField, expiry } = response;
  const formed: Record<string, unknown> = { token_type: 'Bearer' };
  setMember(formed, tokenField, token);
  const lifetimes = {
    seconds: LIFETIME_S,
    milliseconds: LIFETIME_S * 1000,
    date: new Date(Date.now() + LIFETIME_S * 1000).toISOString(),
  };
  if (expiry !== undefined) setMember(formed, expiry.field, lifetimes[expiry.unit]);
  return formed;
}

/** @param path with a dot before each member of a member */
function setMember(object: Record<string, unknown>, path: string, value: unknown): void {
  const [first = '', ...rest] = path.split('.');
  if (rest.length === 0) {
    object[first] = value;
    return;
  }
  object[first] ??= {};
  setMember(object[first] as Record<string, unknown>, rest.join('.'), value);
}

async function takeCall(account: Account, message: IncomingMessage, response: ServerResponse): Promise<void> {
  const hash = createHash('sha256');
  for await (const chunk of message as AsyncIterable<Buffer>) hash.update(chunk);
  const found = [...findCallFaults(account, message.rawHeaders), ...findQueryFaults(account, message.url ?? '')];
  if (found.length > 0) {
    refuse(account, 'call', found, response);
    return;
  }
  const body = contentOf(account.customer.name, message.method === 'PUT' ? 1_500_000 : 300);
  const sent = createHash('sha256').update(body).digest('hex');
  response.writeHead(200, { [DIGEST_FIELDS.received]: hash.digest('hex'), [DIGEST_FIELDS.sent]: sent }).end(body);
}

function findCallFaults({ customer, tokens }: Account, rawHeaders: readonly string[]): readonly string[] {
  const { tokenField, prefix, fields } = customer.shape.call;
  const valuesOf = (name: string): readonly string[] =>
    rawHeaders.filter((_, index) => index % 2 === 1 && rawHeaders[index - 1]?.toLowerCase() === name.toLowerCase());
  const [value = '', ...more] = tokenField === undefined ? [] : valuesOf(tokenField);
  const isTokenSent = value.startsWith(prefix) && tokens.has(value.slice(prefix.length)) && more.length === 0;
  const isWrong = tokenField !== undefined && !isTokenSent;
  const own = [tokenField?.toLowerCase(), ...Object.keys(fields)];
  const isElsewhere = rawHeaders.some(
    (text, index) =>
      tokens.has(text.slice(text.indexOf(' ') + 1)) && !own.includes(rawHeaders[index - 1]?.toLowerCase()),
  );
  const isAuthorized = own.includes('authorization');
  return [
    ...(isWrong ? [`the token is not in ${tokenField}, or with another prefix, or there are several`] : []),
    ...(!isWrong && valuesOf('authorization').length !== Number(isAuthorized) ? ['one more Authorization field'] : []),
    ...(isElsewhere ? ['the token is in another field, too'] : []),
    ...Object.entries(fields).flatMap(([name, text]) =>
      valuesOf(name).join('\n') === customer.fill(text) ? [] : [`another field ${name}`],
    ),
  ];
}

/** The application's own query stays as it is; the partner's parameters follow it, each once. */
function findQueryFaults({ customer }: Account, url: string): readonly string[] {
  const own = Object.entries(customer.shape.call.query).map(
    ([name, text]) => `&${name}=${encodeURIComponent(customer.fill(text))}`,
  );
  return url.endsWith(`/call?${CLIENT_QUERY}${own.join('')}`) ? [] : ['another query'];
}

/** As most servers of each kind refuse: RFC 6749 §5.2, or an object of their own. */
function refuse({ customer, faults }: Account, what: string, found: readonly string[], response: ServerResponse): void {
  faults.push(...found.map((fault) => `${what}: ${fault}`));
  const isOauth = customer.shape.request?.client.startsWith('client_secret') === true && what === 'token request';
  const isCredential = found.some((fault) => /client|secret|assertion/.test(fault));
  const body = isOauth
    ? { error: isCredential ? 'invalid_client' : 'invalid_request', error_description: found.join('; ') }
    : { success: false, message: found.join('; ') };
  const status = isOauth && !isCredential ? 400 : 401;
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}
