/** Wherever a text from outside enters, and however it writes a secret of this process: nothing that the sidecar shows or keeps has it. */
import { InMemorySpanExporter } from '@opentelemetry/sdk-trace';
import fc from 'fast-check';
import { expect, onTestFinished, test } from 'vitest';
import { createLog } from '../../src/telemetry/log/log.ts';
import { createTracing } from '../../src/telemetry/tracing/exporting.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { scratchFile } from '../config/base-env.ts';
import { registerSecret } from '../support/secrets.ts';
import { openSocket, readToEnd } from '../support/raw-client.ts';
import { MemoryStream } from '../telemetry/log/memory-stream.ts';
import { startInProcess, until } from './in-process.ts';

const SECRETS = {
  'the client secret of the other credential': 'Other+Secret/9 "of" 100% b',
  'a value of upstream.headers': 'K3y-of_the=partner~2026',
  'a value of upstream.query': 'Qu3ry+Key/of=the&partner#9',
  'the value of the required header': 'local-password-77',
  'an access token': 'eyJhbGciOiJub25lIn0.eyJzdWIiOiJtZSJ9.c2lnbmF0dXJl',
};
for (const [what, value] of Object.entries(SECRETS)) registerSecret(what, value);

const FORMS: Readonly<Record<string, (secret: string) => string>> = {
  'percent-encoded': (secret) => encodeURIComponent(secret),
  'percent-encoded in small letters': (secret) =>
    encodeURIComponent(secret).replaceAll(/%../g, (hex) => hex.toLowerCase()),
  'percent-encoded as a whole': (secret) => Buffer.from(secret).toString('hex').replaceAll(/../g, '%$&'),
  'form-encoded': (secret) => new URLSearchParams([['', secret]]).toString().slice(1),
  'in Base64': (secret) => encodeURIComponent(Buffer.from(secret).toString('base64')),
  'in Basic credentials': (secret) => encodeURIComponent(Buffer.from(`partner-1:${secret}`).toString('base64')),
  'in Base64 for URLs': (secret) => Buffer.from(`id:${secret}`).toString('base64url'),
};

/** Each sends one text to the sidecar, from one side or the other. */
type Place = (text: string, sent: Sides) => Promise<unknown>;

interface Sides {
  readonly request: (path: string, fields?: Readonly<Record<string, string>>) => Promise<string>;
  /** What the API sends next. */
  readonly api: { fields: Record<string, string>; status: number; raw?: string };
}

const PLACES: Readonly<Record<string, Place>> = {
  'a path that Location named': async (text, { request, api }) => {
    api.fields = { location: `/moved/${text}/there` };
    api.status = 302;
    await request('/a');
    await request(`/moved/${text}/there`);
  },
  'a long path, where it is cut': (text, { request }) => request(`/${'x'.repeat(500)}/${text}`),
  'a long path, where /status cuts it': (text, { request }) => request(`/${'x'.repeat(190)}/${text}`),
  'the id that the API names': (text, { request, api }) => {
    api.fields = { 'x-request-id': text.slice(0, 128) };
    return request('/a');
  },
  'a scope that the API asks for': (text, { request, api }) => {
    api.status = 403;
    api.fields = { 'www-authenticate': `Bearer error="insufficient_scope", scope="${'s'.repeat(60)} ${text}"` };
    return request('/a');
  },
  'a response that is no HTTP': (text, { request, api }) => {
    api.raw = `HTTP/1.1 200 ${text}\r\n${text}\r\n\r\n`;
    return request('/a');
  },
  'a Host that is not allowed': (text, { request }) => request('/a', { Host: text.replaceAll('%', '.') + '.example' }),
  'an Origin that is not allowed': (text, { request }) => request('/a', { Origin: `http://${'o'.repeat(80)}${text}` }),
  "the client's own id and name": (text, { request }) =>
    request('/a', { 'X-Request-Id': text, ...(text.length <= 64 && { 'X-Sidecar-Caller': text }) }),
};

/** The form itself, or any part of it but what surrounds the secret in Base64. */
function holds(shown: string, written: string): boolean {
  const core = written.slice(16, -4);
  const parts = Array.from({ length: Math.max(1, core.length - 13) }, (_, at) => core.slice(at, at + 14));
  return parts.some((part) => part.length >= 12 && shown.includes(part));
}

/** @param description of the authorization server's refusal. Default: it gives a token */
async function startSides(description?: string) {
  const stream = new MemoryStream();
  const log = createLog({ level: 'debug', destination: stream });
  const exporter = new InMemorySpanExporter();
  const tracing = createTracing(
    {
      env: {},
      version: '1',
      tokenServers: new Map(),
      clock: systemClock,
      mask: log.secrets.mask,
      observe: log.observe,
    },
    {
      kind: 'on',
      sampling: { ratio: 1, followsParent: true },
      batching: { delayMs: 5, queueMax: 2048, batchMax: 512 },
      warnings: [],
    },
    exporter,
  );
  const api: Sides['api'] = { fields: {}, status: 200 };
  const { sidecar, url } = await startInProcess({
    respond: (_, response) => {
      if (api.raw === undefined) response.writeHead(api.status, api.fields).end();
      else response.socket?.end(api.raw);
    },
    respondToTokenRequest: (_, response) => {
      const error = JSON.stringify({ error: 'invalid_client', error_description: description });
      const token = JSON.stringify({
        access_token: SECRETS['an access token'],
        token_type: 'Bearer',
        expires_in: 3600,
      });
      response.writeHead(description === undefined ? 200 : 400).end(description === undefined ? token : error);
    },
    env: {
      SIDECAR_UPSTREAM_HEADERS: JSON.stringify({ 'X-Key': SECRETS['a value of upstream.headers'] }),
      SIDECAR_UPSTREAM_QUERY: JSON.stringify({ api_key: SECRETS['a value of upstream.query'] }),
      SIDECAR_LISTEN_REQUIRED_HEADER_NAME: 'X-Local',
      SIDECAR_LISTEN_REQUIRED_HEADER_VALUE: SECRETS['the value of the required header'],
      SIDECAR_ADMIN_RECENT_CALLS: 'true',
      SIDECAR_RETRY_ATTEMPTS: '1',
      SIDECAR_AUTH_INVALIDATION_COOLDOWN_MS: '1',
    },
    file: scratchFile(`
credentials: [{ name: other, clientId: other, clientSecret: ${JSON.stringify(SECRETS['the client secret of the other credential'])} }]
routes: [{ name: second, pathPrefix: /second, credential: other }]`),
    log,
    startTracer: tracing.startTracer,
  });
  onTestFinished(async () => {
    await tracing.close(100);
    await log.close(0);
  });
  const replies: string[] = [];
  const request: Sides['request'] = async (path, fields = {}) => {
    const { host } = new URL(url);
    const all = { Host: host, 'X-Local': SECRETS['the value of the required header'], Connection: 'close', ...fields };
    const socket = await openSocket(url);
    const reply = readToEnd(socket);
    socket.write(
      `GET ${path} HTTP/1.1\r\n${Object.entries(all)
        .map(([name, value]) => `${name}: ${value}\r\n`)
        .join('')}\r\n`,
    );
    const { headers, body } = await reply;
    // A response of the API and the client's own id are passed on as they are.
    if (headers['proxy-status'] !== undefined) replies.push(body.toString().replace(/"requestId":"[^"]*"/, ''));
    return body.toString();
  };
  const read = async (path: string): Promise<string> => (await fetch(sidecar.adminUrl + path)).text();
  return {
    sides: { request, api } satisfies Sides,
    async readAll(): Promise<Readonly<Record<string, string>>> {
      const status = await read('/status');
      await until(() => exporter.getFinishedSpans().length > 0, 'spans');
      const spans = exporter.getFinishedSpans().map(({ name, attributes, status: end }) => ({ name, attributes, end }));
      return {
        '/status': status,
        '/': await read('/'),
        '/metrics': await read('/metrics'),
        'the local replies': replies.join('\n'),
        'the spans': JSON.stringify(spans),
        'the log': stream.text,
      };
    },
  };
}

function expectHidden(shown: Readonly<Record<string, string>>, texts: readonly string[]): void {
  for (const [where, all] of Object.entries(shown))
    for (const text of texts) expect(holds(all, text), `${where}: ${text}`).toBe(false);
}

test.each(Object.keys(PLACES))('%s shows no secret in any form', async (name) => {
  const { sides, readAll } = await startSides();
  await sides.request('/second/a');
  await sides.request('/a');
  const inputs = [fc.constantFrom(...Object.values(SECRETS)), fc.constantFrom(...Object.values(FORMS))] as const;
  await fc.assert(
    fc.asyncProperty(...inputs, async (secret, encode) => {
      const text = encode(secret);
      Object.assign(sides.api, { fields: {}, status: 200, raw: undefined });
      await PLACES[name]!(text, sides);
      expectHidden(await readAll(), [text, secret]);
    }),
    { numRuns: 25 },
  );
});

test.each(Object.keys(FORMS))('an error description shows no secret of another credential %s', async (form) => {
  for (const [what, secret] of Object.entries(SECRETS)) {
    if (what === 'an access token') continue;
    const text = FORMS[form]!(secret);
    const { sides, readAll } = await startSides(`${'d'.repeat(200)} is not known: ${text}`);
    expect(await sides.request('/a')).toContain('TOKEN_REJECTED');
    expectHidden(await readAll(), [text, secret]);
  }
});
