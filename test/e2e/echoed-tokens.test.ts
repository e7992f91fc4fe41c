/**
 * An upstream that sends the token and the secret header fields of each call back in every header field, reason phrase and body, and an
 * authorization server that sends back what it knows: none of it is in anything that the sidecar keeps or prints.
 */
import { randomBytes } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { listSecretEncodings } from '../support/secret-encodings.ts';
import { scratchDirectory } from '../config/base-env.ts';
import { call } from '../support/calls.ts';
import { runCheck } from '../support/check-run.ts';
import { startOtlpReceiver } from '../support/otlp-receiver.ts';
import { startRecordingUpstream } from '../support/recording-upstream.ts';
import type { RespondTo } from '../support/recording-upstream.ts';
import { newCredential, registerSecret } from '../support/secrets.ts';
import type { Credential } from '../support/secrets.ts';
import { baseSettings, spawnSidecar, startSidecar, waitUntilReady } from '../support/sidecar-process.ts';
import { waitUntil } from '../support/until.ts';

/** A part of a token that no other text has by chance. */
const PART_CHARS = 16;

/** Fixed fields of each call: two have their values in the settings, one in a file. */
const SECRET_FIELDS = ['x-api-key', 'x-partner', 'x-from-file'] as const;

function newHeaderSecret(prefix: string): string {
  const value = prefix + randomBytes(60).toString('base64');
  registerSecret('the value of a header field', value);
  return value;
}

/** What the upstream echoes: as it is, percent-encoded, in base64, and where the sidecar would cut it. */
function listEchoes(token: string): string[] {
  const encoded = listSecretEncodings(token);
  return [token, ...encoded, `${'x'.repeat(230)} ${token}`, `error="${token}"`];
}

function echoFields(token: string, echo: string): Record<string, string> {
  const challenge = `Bearer realm="${echo}", error="insufficient_scope", error_description="${token}", scope="${echo}"`;
  return {
    'retry-after': echo,
    ratelimit: echo,
    'ratelimit-policy': `"${token}";q=1;w=${token}`,
    'ratelimit-limit': echo,
    'ratelimit-remaining': token,
    'ratelimit-reset': echo,
    'x-ratelimit-limit': echo,
    'x-ratelimit-remaining': '0',
    'x-ratelimit-reset': token,
    'x-ratelimit-reason': echo,
    'www-authenticate': challenge,
    'set-cookie': `session=${token}; Path=/${encodeURIComponent(echo)}`,
    location: `/${encodeURIComponent(token)}`,
    'content-type': 'application/problem+json',
    'server-timing': `db;desc="${token}"`,
    // The first valid one is kept: a whole token or its beginning, plain or encoded.
    'x-request-id': echo.slice(0, 128),
    'x-correlation-id': token.slice(0, 128),
    'cf-ray': Buffer.from(token).toString('base64url').slice(0, 60),
  };
}

const STATUSES = [200, 302, 400, 403, 404, 408, 500, 502, 503, 429];

/** The token and the secret fields of a call in turn. */
const respond: RespondTo = ({ headers, path }, response, index) => {
  const bearer = (headers.authorization ?? '').replace('Bearer ', '');
  const secrets = [bearer, ...SECRET_FIELDS.map((name) => String(headers[name]))];
  const token = secrets[index % secrets.length]!;
  const echoes = listEchoes(token);
  const echo = echoes[Math.floor(index / secrets.length) % echoes.length]!;
  const url = new URL(path, 'http://api.test');
  const body = JSON.stringify({ type: token, title: echo, detail: token, error: token, error_description: echo });
  if (url.pathname.endsWith('/malformed')) {
    response.socket?.end(`HTTP/1.1 200 ${token}\r\nContent-Length: ${token}\r\n${token}\r\n\r\n${token}`);
    return;
  }
  const status = Number(url.searchParams.get('status') ?? 200);
  const fields = { ...echoFields(token, echo), ...(url.searchParams.has('cut') && { 'content-length': '100000' }) };
  response.writeHead(status, token, fields);
  if (url.searchParams.has('cut')) response.write(body, () => response.destroy());
  else response.end(body);
};

/** Echoes the secrets and the newest token in each form of a failure, and issues every third time a new token. */
function createAuthorization(credential: Credential, issued: string[], headerSecrets: readonly string[]): RespondTo {
  return (_, response, index) => {
    const newest = issued.at(-1) ?? '';
    const words = [credential.secret, newest, ...headerSecrets, encodeURIComponent(newest)].join(' ');
    if (index % 3 === 1) {
      response.writeHead(503, newest, { 'retry-after': newest, 'content-type': 'application/json' });
      response.end(JSON.stringify({ error: newest, error_description: words, trace_id: newest.slice(0, 40) }));
      return;
    }
    if (index % 3 === 2) {
      const challenge = `Bearer error="temporarily_unavailable", error_description="${words}"`;
      response.writeHead(401, credential.secret, { 'www-authenticate': challenge }).end(words);
      return;
    }
    const value = `eyJ${randomBytes(150).toString('base64url')}~+/=`;
    issued.push(value);
    registerSecret('an access token', value);
    const token = {
      access_token: value,
      token_type: 'Bearer',
      expires_in: 3600,
      scope: `${credential.secret} ${newest}`,
    };
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(token));
  };
}

/** The tokens of which a part is in the text, plain or encoded, each with the place. */
function findTokens(outputs: Readonly<Record<string, string>>, issued: readonly string[]): string[] {
  const found: string[] = [];
  for (const [place, text] of Object.entries(outputs))
    for (const [number, token] of issued.entries())
      for (const form of new Set(listSecretEncodings(token)))
        for (let at = 0; at + PART_CHARS <= form.length; at++) {
          const foundAt = text.indexOf(form.slice(at, at + PART_CHARS));
          if (foundAt < 0) continue;
          found.push(
            `${place}: token ${number + 1} in ${JSON.stringify(text.slice(Math.max(0, foundAt - 80), foundAt + 40))}`,
          );
          break;
        }
  return [...new Set(found)];
}

it('no token and no secret header field that the upstream or the authorization server echoes is kept or printed', async () => {
  const issued: string[] = [];
  const credential = newCredential();
  const headerSecrets = [newHeaderSecret('Basic '), newHeaderSecret('k_'), newHeaderSecret('')];
  const [apiKey, partner, inFile] = headerSecrets;
  const path = join(scratchDirectory(), 'key');
  await writeFile(path, inFile!);
  await using collector = await startOtlpReceiver();
  await using upstream = await startRecordingUpstream(respond);
  await using authorization = await startRecordingUpstream(createAuthorization(credential, issued, headerSecrets));
  const settings = {
    ...baseSettings(upstream.url, authorization.url, credential),
    SIDECAR_LOG_LEVEL: 'trace',
    SIDECAR_AUTH_INVALIDATION_COOLDOWN_MS: '200',
    SIDECAR_THROTTLE_MAX_PAUSE_MS: '1000',
    SIDECAR_RETRY_ATTEMPTS: '1',
    SIDECAR_SCOPE: 'read',
    SIDECAR_RATE: '1000',
    SIDECAR_BURST: '100',
    SIDECAR_UPSTREAM_HEADERS: JSON.stringify({
      'X-Api-Key': apiKey,
      'X-Partner': partner,
      'X-From-File': { file: path },
    }),
  };
  const env = {
    ...settings,
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    OTEL_BSP_SCHEDULE_DELAY: '100',
    SIDECAR_ADMIN_RECENT_CALLS: 'true',
  };
  await using sidecar = await startSidecar({ name: 'echoed-tokens', env });
  await waitUntilReady(sidecar);
  const events = await fetch(`${sidecar.adminUrl}/events`);
  const reader = events.body!.getReader();
  let stream = '';
  const reading = (async () => {
    for (let chunk = await reader.read(); !chunk.done; chunk = await reader.read())
      stream += Buffer.from(chunk.value).toString('utf8');
  })().catch(() => undefined);

  const replies: string[] = [];
  const send = async (path: string): Promise<void> => {
    const headers = { 'x-sidecar-timeout-ms': '400' };
    const reply = await call(`${sidecar.proxyUrl}${path}`, { headers }).catch(() => undefined);
    // A reply of the sidecar itself, not what the upstream sent.
    if (reply?.headers['proxy-status'] !== undefined) replies.push(JSON.stringify([reply.headers, reply.text]));
  };
  const sendAll = async (statuses: readonly number[]): Promise<void> => {
    for (const status of statuses)
      await Promise.all(Array.from({ length: 12 }, () => send(`/things?status=${status}`)));
    await Promise.all([send('/things?cut'), send('/malformed'), send('/things?status=503&cut')]);
  };
  await sendAll(STATUSES);
  for (let round = 0; round < 20 && issued.length < 2; round++) {
    await send('/things?status=401');
    await sleep(300);
  }
  await waitUntil(() => issued.length > 1, 'a second token');
  await sendAll([403, 503, 429]);
  headerSecrets.push(newHeaderSecret('the new one '));
  await writeFile(path, headerSecrets.at(-1)!);
  await waitUntil(() => sidecar.stdout().includes('new credentials applied'), 'the new value of the file');
  await sendAll([403]);
  // It cannot be used, and a part of it is secret.
  await writeFile(path, `${newHeaderSecret('')}\n${headerSecrets[0]!}\n`);
  await waitUntil(() => sidecar.stdout().includes('new credentials not applied'), 'the fault of the file');
  await send('/things?status=403');
  const sent = upstream.requests.at(-1)?.headers;
  expect(SECRET_FIELDS.map((name) => sent?.[name])).toEqual([apiKey, partner, headerSecrets.at(-1)]);
  await writeFile(path, headerSecrets.at(-1)!);

  // Each knows the token that it got itself.
  const issuedToChecks: string[] = [];
  const checkWith = async (name: string, status: number, ...args: string[]): Promise<string> => {
    const ofCheck: string[] = [];
    await using own = await startRecordingUpstream(createAuthorization(credential, ofCheck, headerSecrets));
    const env = { ...settings, SIDECAR_AUTH_URL: own.url };
    const before = upstream.requests.length;
    const { stdout, stderr } = await runCheck(name, env, ['--probe', `/things?status=${status}`, ...args]);
    issuedToChecks.push(...ofCheck);
    expect(upstream.requests.slice(before)).toMatchObject([{ headers: { 'x-api-key': apiKey, 'x-partner': partner } }]);
    return stdout + stderr;
  };
  const read = async (path: string): Promise<string> => (await fetch(`${sidecar.adminUrl}${path}`)).text();
  const run = async (...args: string[]): Promise<string> => {
    const address = { SIDECAR_ADMIN_LISTEN: new URL(sidecar.adminUrl).host };
    await using command = spawnSidecar({ name: `echoed-tokens-${args[0]}`, args, env: { ...env, ...address } });
    await command.exit;
    return command.stdout() + command.stderr();
  };
  const outputs: Record<string, string> = {
    check: await checkWith('echoed-tokens', 401),
    'check of 403': await checkWith('echoed-tokens-403', 403, '--json'),
    '/status': await read('/status'),
    '/': await read('/'),
    '/metrics': await read('/metrics'),
    status: (await run('status')) + (await run('status', '--json')),
    config: await run('config'),
    'local replies': replies.join('\n'),
  };
  await sidecar.stop();
  await reading;
  outputs.log = sidecar.stdout() + sidecar.stderr();
  outputs.events = stream;
  outputs.traces = collector.receivedBytes().toString('latin1');
  for (const [place, text] of Object.entries(outputs)) expect(text, place).not.toBe('');
  expect(findTokens(outputs, [...issued, ...issuedToChecks, ...headerSecrets])).toEqual([]);
  for (const [place, text] of Object.entries(outputs)) expect(text, place).not.toContain(credential.secret);
});
