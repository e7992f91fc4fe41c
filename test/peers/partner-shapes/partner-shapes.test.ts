/**
 * The sidecar as users run it, with the settings that docs/partners.md gives for each partner, in front of a strict stub of it: calls
 * with bodies in both directions, the lifetimes of tokens, and that no secret is shown.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { call } from '../../support/calls.ts';
import { nameOf } from './customer.ts';
import { KEY_PARTNERS } from './key-partners.ts';
import { OAUTH_PARTNERS } from './oauth-partners.ts';
import { OWN_FORM_PARTNERS } from './own-form-partners.ts';
import { OBSTACLES } from './partner-shape.ts';
import type { PartnerShape } from './partner-shape.ts';
import { startPartnerRoutes } from './partner-routes.ts';
import type { PartnerRoutes } from './partner-routes.ts';
import { selectSettings } from './partner-settings.ts';
import type { PartnerSettings } from './partner-settings.ts';
import { UNSERVED_OAUTH_PARTNERS, UNSERVED_OWN_FORM_PARTNERS } from './unserved-partners.ts';

const SERVED = [...OAUTH_PARTNERS, ...OWN_FORM_PARTNERS, ...KEY_PARTNERS];
const UNSERVED = [...UNSERVED_OAUTH_PARTNERS, ...UNSERVED_OWN_FORM_PARTNERS];

describe('with its settings', () => {
  const started = new AsyncDisposableStack();
  let routes: PartnerRoutes;
  beforeAll(async () => {
    routes = started.use(await startPartnerRoutes('partner-shapes', SERVED));
  });
  afterAll(() => started.disposeAsync());

  test.each(SERVED.map((shape) => [shape.name, shape] as const))(
    '%s takes GET, POST and a PUT of 1.5 MB',
    async (_, shape) => {
      for (const method of ['GET', 'POST', 'PUT'] as const) {
        const { status, isWhole, text } = await routes.call(shape, method);
        const faults = routes.faultsOf(shape);
        expect({ method, status, text, faults }).toEqual({ method, status: 200, text: '', faults: [] });
        expect(isWhole, `${method}: a body was changed`).toBe(true);
      }
    },
  );

  test('each token has the lifetime that its partner states, or that the settings say', async () => {
    const lifetimes = await routes.readLifetimes();
    const wrong = SERVED.flatMap((shape) => {
      const [expected, found] = [lifetimeOf(shape), lifetimes.get(nameOf(shape)) ?? null];
      const isRight = expected === null ? found === null : found !== null && found <= expected && found > expected - 60;
      return isRight ? [] : [`${shape.name}: ${String(found)} instead of ${String(expected)}`];
    });
    expect(wrong).toEqual([]);
  });

  test('no secret of a customer is shown anywhere', async () => {
    const { adminUrl, proxyUrl, stdout, stderr } = routes.sidecar;
    const urls = [...['/', '/status', '/metrics', '/readyz'].map((path) => adminUrl + path), `${proxyUrl}/no-route`];
    const replies = await Promise.all(urls.map((url) => call(url)));
    const texts = [stdout(), stderr(), ...replies.map(({ text }) => text)];
    expect(routes.findSecrets(texts.join('\n'))).toEqual([]);
  });
});

/** Seconds; null: no expiry. */
function lifetimeOf({ request, response: { expiry, lifetimeMs } }: PartnerShape): number | null {
  if (request === undefined) return null;
  return expiry === undefined || expiry.unit === 'date' ? (lifetimeMs ?? 300_000) / 1000 : 3600;
}

/** Settings that are needed to get a token, and to be let in with it. */
const NEEDED = [
  ...['method', 'grantType', 'bodyFormat', 'audience', 'scope', 'resource', 'extraParameters', 'extraHeaders'],
  ...['tokenField', 'keyId', 'signingAlgorithm', 'certificateFile', 'assertionAudience', 'assertionClaims'],
  ...['tlsCertificateFile', 'tokenHeader', 'tokenPrefix', 'headers'],
];

describe('without one of its settings', () => {
  const shapes = pickShapes();
  const started = new AsyncDisposableStack();
  let routes: PartnerRoutes;
  beforeAll(async () => {
    const leaveOut = (settings: PartnerSettings, shape: PartnerShape): PartnerSettings => {
      const key = [...shapes].find(([, picked]) => picked === shape)?.[0] ?? '';
      return { auth: omit(settings.auth, key), upstream: omit(settings.upstream, key) };
    };
    routes = started.use(await startPartnerRoutes('partner-shapes-strict', [...shapes.values()], leaveOut));
  });
  afterAll(() => started.disposeAsync());

  test.each([...shapes].map(([key, shape]) => [key, shape.name, shape] as const))(
    '%s: the stub of %s gives no token, or takes no call',
    async (_key, _name, shape) => {
      expect((await routes.call(shape, 'GET')).status).not.toBe(200);
    },
  );

  test('`config` shows the settings and no secret', async () => {
    const text = await routes.run('config');
    expect(text).toContain('extraParameters');
    expect(routes.findSecrets(text)).toEqual([]);
  });

  test('every setting that a partner needs was left out once', () => {
    expect([...shapes.keys()]).toEqual(NEEDED);
  });
});

/** A partner for each setting, another one each time; one without a signed assertion, whose settings need each other, if possible. */
function pickShapes(): ReadonlyMap<string, PartnerShape> {
  const candidates = SERVED.filter(({ request }) => request !== undefined).toSorted(
    (a, b) => Number(a.request?.assertion !== undefined) - Number(b.request?.assertion !== undefined),
  );
  const picked = new Map<string, PartnerShape>();
  for (const key of NEEDED) {
    const free = candidates.filter((shape) => ![...picked.values()].includes(shape));
    const shape = free.find((candidate) => {
      const { auth, upstream } = selectSettings(candidate, { fill: (text) => text, fileOf: (name) => name });
      return key in auth || key in upstream;
    });
    if (shape !== undefined) picked.set(key, shape);
  }
  return picked;
}

/** A certificate and its key are left out together. */
function omit<T>(section: Readonly<Record<string, T>>, key: string): Readonly<Record<string, T>> {
  const keys = key === 'tlsCertificateFile' ? [key, 'tlsKeyFile'] : [key];
  return Object.fromEntries(Object.entries(section).filter(([name]) => !keys.includes(name)));
}

test('every partner of the catalogue is served, or has a reason, and there is no other reason', () => {
  const keys = [...SERVED, ...UNSERVED].map(({ key }) => key);
  expect(new Set(keys).size).toBe(keys.length);
  expect(OAUTH_PARTNERS.length + UNSERVED_OAUTH_PARTNERS.length).toBe(103);
  expect(OWN_FORM_PARTNERS.length + UNSERVED_OWN_FORM_PARTNERS.length).toBe(66);
  expect(new Set(UNSERVED.flatMap(({ obstacles }) => obstacles))).toEqual(new Set(OBSTACLES));
});
