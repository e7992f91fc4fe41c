/** The parts of one credential, joined: what its files hold is noticed, tried and withheld from the log. */
import { expect, it, onTestFinished } from 'vitest';
import { createProxySelector } from '../../src/platform/egress/proxy-selector.ts';
import { loadConfig } from '../../src/config/load/load.ts';
import { simple } from '../config/base-env.ts';
import { createTokens } from '../../src/sidecar/tokens.ts';
import type { SidecarEvent } from '../../src/telemetry/events.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { mountSecret } from '../support/mounted-secret.ts';
import { startRecordingUpstream } from '../support/recording-upstream.ts';
import { newCredential, registerSecret } from '../support/secrets.ts';
import { giveToken, until } from './in-process.ts';

it('a new secret is masked and used within 2 s after its symbolic link has changed, as in Kubernetes', async () => {
  const { id, secret } = newCredential();
  const [before, after] = [secret, `${secret}-after`];
  registerSecret('a client secret', after);
  await using mounted = await mountSecret({ secret: before });
  await using server = await startRecordingUpstream(giveToken);
  const loaded = loadConfig({
    env: {
      SIDECAR_BASE_URL: server.url,
      SIDECAR_AUTH_URL: server.url,
      SIDECAR_CLIENT_ID: id,
      SIDECAR_CLIENT_SECRET_FILE: mounted.path('secret'),
      SIDECAR_SCOPE: 'a',
    },
  });
  if (!loaded.ok) throw new Error('refused');
  const clock = new ManualClock();
  const events: SidecarEvent[] = [];
  const withheld: string[][] = [];
  const tokens = createTokens({
    credential: 'default',
    auth: simple(loaded.config).auth,
    egress: createProxySelector(loaded.config.egress),
    tokenStore: undefined,
    redactValue: (...secret) => withheld.push(secret.filter((text) => text !== undefined)),
    clock,
    random: () => 0,
    observe: (event) => events.push(event),
  });
  onTestFinished(() => tokens.stop());
  tokens.start();
  await until(() => tokens.current() !== undefined, 'the first token');
  expect(withheld).toEqual([[before, id]]);

  await mounted.replace({ secret: after });
  await clock.advance(2_000);
  await until(() => tokens.current()?.serial === 2, 'a token of the new secret');
  expect(withheld).toEqual([
    [before, id],
    [after, id],
  ]);
  const basic = (value: string): string => `Basic ${Buffer.from(`${id}:${value}`).toString('base64')}`;
  expect(server.requests.map(({ headers }) => headers.authorization)).toEqual([basic(before), basic(after)]);
  expect(events).toContainEqual({ kind: 'token-invalidated', credential: 'default', reason: 'rotated' });
});
