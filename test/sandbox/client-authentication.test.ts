/** The simulated token endpoint accepts HTTP Basic with raw UTF-8 credentials only. */
import { afterEach, describe, expect, test } from 'vitest';
import { systemClock } from '../../src/platform/clock.ts';
import { fetch } from './https-client.ts';
import { sendRaw } from './raw-request.ts';
import { FORM, ask, basic, closeStarted, start } from './token-client.ts';

afterEach(closeStarted);

describe('client authentication', () => {
  test.each(['pä:ß%2B+/=', 'with:colons::', ' spaces ', '密码', ''])(
    'accepts the secret %j unchanged',
    async (secret) => {
      const server = await start(systemClock, { secret });
      const authorization = basic(`client:${secret}`);
      const { status } = await ask(server.tokenUrl, { headers: { authorization }, body: `${FORM}&scope=unknown` });
      // Authenticated: what is refused is the scope.
      expect(status).toBe(400);
      const granted = await ask(server.tokenUrl, { headers: { authorization }, body: FORM });
      expect(granted.status).toBe(200);
    },
  );

  test('accepts the scheme in any case', async () => {
    const server = await start();
    const authorization = basic('client:secret').replace('Basic', 'bASIC');
    const { status } = await ask(server.tokenUrl, {
      headers: { authorization },
      body: FORM,
    });
    expect(status).toBe(200);
  });

  const secret = 'pä:ß%2B+/=';
  test.each([
    ['a wrong secret', basic('client:wrong')],
    ['a wrong id', basic(`clienT:${secret}`)],
    ['a form-encoded secret', basic(`client:${encodeURIComponent(secret)}`)],
    ['a secret in Latin-1', `Basic ${Buffer.from(`client:${secret}`, 'latin1').toString('base64')}`],
    ['base64 without its padding', basic(`client:${secret}`).replace(/=+$/, '')],
    ['no colon', basic('client')],
    ['no base64', 'Basic ???'],
    ['another scheme', 'Bearer abc'],
  ])('refuses %s', async (_name, authorization) => {
    const server = await start(systemClock, { secret });
    const response = await ask(server.tokenUrl, { headers: { authorization }, body: FORM });
    expect(response.status).toBe(401);
    expect(response.body.error).toBe('invalid_client');
    expect(response.field('www-authenticate')).toMatch(/^Basic realm=/);
    expect(response.field('cache-control')).toBe('no-store');
    expect(JSON.stringify(response.body)).not.toContain(secret);
  });

  test('refuses credentials in the form instead of the field', async () => {
    const server = await start();
    const response = await fetch(server.tokenUrl, {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: `${FORM}&client_id=client&client_secret=secret`,
    });
    expect(response.status).toBe(401);
    expect(await response.json()).toMatchObject({ error: 'invalid_client' });
  });

  test('refuses two Authorization fields', async () => {
    const server = await start();
    const field = `Authorization: ${basic('client:secret')}\r\n`;
    const response = await sendRaw(
      server.url,
      `POST /oauth/token HTTP/1.1\r\nHost: x\r\n${field}${field}Content-Type: application/x-www-form-urlencoded\r\n` +
        `Content-Length: ${FORM.length.toString()}\r\nConnection: close\r\n\r\n${FORM}`,
    );
    expect(response).toMatch(/^HTTP\/1\.1 400 /);
    expect(response).toContain('"invalid_request"');
  });
});
