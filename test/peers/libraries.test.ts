/** Habits of the smaller libraries, as tried, that the sidecar must not pass on to its users. */
import { parseDictionary, parseList } from 'structured-headers';
import { describe, expect, it } from 'vitest';
import { loadConfig } from '../../src/config/load/load.ts';
import { sendToken, startInProcess, until } from '../composition/in-process.ts';
import { send } from '../composition/send.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { echo } from '../support/recording-upstream.ts';

describe('structured-headers 2.1.0 throws on the older `RateLimit: limit=10, remaining=0`', () => {
  const OLDER = 'limit=10, remaining=0, reset=7';

  it('the peer: as a list it throws', () => {
    expect(() => parseList(OLDER)).toThrow();
    expect(parseDictionary(OLDER).get('reset')).toBeDefined();
  });

  it.each([OLDER, '"default";r=0;t=7', ';;;, garbage ('])('not here: %s on a 429', async (field) => {
    const clock = new ManualClock();
    const { url, eventsOf } = await startInProcess({
      clock,
      respond: (request, response, index) => {
        if (index === 0) response.writeHead(429, { ratelimit: field }).end();
        else void echo(request, response, index);
      },
    });
    const call = send(url);
    await until(() => eventsOf('rate-limited').length === 1, 'the pause');
    await clock.advance(7000);
    expect((await call).status).toBe(200);
    expect(eventsOf('rate-limited')[0]!.pauseMs).toBe(field.startsWith(';') ? 0 : 7000);
  });
});

describe('oauth4webapi 3.8.8', () => {
  it('loses invalid_client when the 401 carries WWW-Authenticate — here it is named', async () => {
    const { url } = await startInProcess({
      respondToTokenRequest: (_, response) => {
        response.writeHead(401, { 'www-authenticate': 'Basic realm="x"', 'content-type': 'application/json' });
        response.end('{"error":"invalid_client"}');
      },
    });
    const response = await send(url);
    expect(response).toMatchObject({ status: 502, code: 'TOKEN_REJECTED' });
    expect(response.text).toContain('invalid_client');
  });

  it('has the token in the cause of its errors — here the body of a bad response appears nowhere', async () => {
    const { url, sidecar, events } = await startInProcess({
      respondToTokenRequest: (_, response) => {
        response.writeHead(200, { 'content-type': 'application/json' });
        response.end('{"access_token":"a-token-never-to-be-shown","token_type":"mac","expires_in":60}');
      },
    });
    const response = await send(url);
    expect(response).toMatchObject({ status: 503, code: 'TOKEN_UNAVAILABLE' });
    const status = await (await fetch(`${sidecar.adminUrl}/status`)).text();
    expect(response.text + status + JSON.stringify(events)).not.toContain('a-token-never-to-be-shown');
  });

  it('form-encodes the id and secret in Basic — here they are joined as they are', async () => {
    const { tokens, api, url } = await startInProcess({
      respondToTokenRequest: (_, response, index) => sendToken(response, index, 3600),
      env: { SIDECAR_CLIENT_ID: 'a b+c', SIDECAR_CLIENT_SECRET: 'ü%/+: x' },
    });
    await send(url);
    expect(api.requests).toHaveLength(1);
    const basic = tokens.requests[0]!.headers.authorization!.replace('Basic ', '');
    expect(Buffer.from(basic, 'base64').toString('utf8')).toBe('a b+c:ü%/+: x');
  });
});

describe('convict', () => {
  const env = {
    SIDECAR_BASE_URL: 'https://api.example.com',
    SIDECAR_AUTH_URL: 'https://login.example.com',
    SIDECAR_CLIENT_ID: 'id',
    SIDECAR_CLIENT_SECRET: 'secret',
    SIDECAR_AUDIENCE: 'x',
  };

  it.each([
    ['reads 0 as true', 'SIDECAR_WEBSOCKET', '0'],
    ['reads no as true', 'SIDECAR_WEBSOCKET', 'no'],
    ['reads 10s as 10', 'SIDECAR_DEADLINE_MS', '10s'],
  ])('%s — here it is a problem that names %s', (_, variable, value) => {
    const loaded = loadConfig({ env: { ...env, [variable]: value } });
    expect(loaded.ok).toBe(false);
    expect(loaded.ok ? [] : loaded.problems).toMatchObject([{ variable }]);
  });

  it('reads an empty boolean as true — here it is unset', () => {
    const loaded = loadConfig({ env: { ...env, SIDECAR_WEBSOCKET: '' } });
    expect(loaded.ok && loaded.config.routes[0].upstream.websocket).toBe(false);
  });
});

it('a rebinding GET of Chromium carries neither Origin nor Sec-Fetch-Site — its Host is enough to refuse it', async () => {
  const { url, api } = await startInProcess();
  const response = await send(url, { headers: { host: `rebound.example:${new URL(url).port}` } });
  expect(response).toMatchObject({ status: 403, code: 'HOST_NOT_ALLOWED' });
  expect(api.requests).toHaveLength(0);
});
