/** Whose fault it is, in played scenes: what is expected of `where`, the first words, the route, and the advice. */
import { describe, expect, it } from 'vitest';
import { CAUSES } from '../../../src/admin/verdict/causes.ts';
import { FAULT_CAUSES } from '../../../src/telemetry/events.ts';
import type { ThrottleState } from '../../../src/throttle/throttle.ts';
import { limited, noToken, unpaced, validToken } from '../states.ts';
import { PlayedVerdict } from './played-verdict.ts';

/** So many seconds, each with these calls. */
const played = (seconds: number, each?: (scene: PlayedVerdict, second: number) => void): PlayedVerdict =>
  new PlayedVerdict().play(seconds, each);
const throttle = (given: Partial<ThrottleState>) => ({ throttles: [{ ...unpaced, ...given }] });
const twoRoutes = {
  throttles: [
    { ...unpaced, route: 'orders' },
    { ...unpaced, route: 'stock' },
  ],
};
const tokenWith = (outcome: 'rejected' | 'unavailable', detail: string) => ({
  ...noToken,
  ...{ consecutiveFailures: 3, lastFailure: { outcome, detail, wallAt: 0 } },
});
const outage = tokenWith('unavailable', 'auth.test refused the connection (ECONNREFUSED)');
const wrongSecret = tokenWith(
  'rejected',
  'auth.test responded to the token request with 401 and the error "invalid_client"',
);
const expiring = [{ name: 'BearerSidecarTokenExpiring', subject: 'default', value: 20 }] as const;
/** A healthy minute with a token, then these states. */
const withToken = (states: PlayedVerdict['states']): PlayedVerdict => {
  const scene = new PlayedVerdict();
  scene.played.count('token_requests_total', { credential: 'default', outcome: 'ok' });
  return scene.play(60, (s) => void HEALTHY(s)).with(states);
};
const declared = {
  ...{ name: 'day', per: '1d', calls: 100, used: 0, reserve: 0, usedUpAt: Infinity },
  resetsAt: Date.UTC(2026, 10, 2),
};
const with429 = { wallAt: 0, status: 429, pauseMs: 20_000, stated: true, fields: { 'retry-after': 20 } };

const unread = { inFlight: 64, inFlightLimit: 64, stalledResponses: 70, stalledInFlight: 60 };

const SCENES: readonly (readonly [scene: string, where: string, words: string, play: () => PlayedVerdict])[] = [
  [
    'slow without a 429',
    'partner',
    'The partner is slow: 3.9 s',
    () =>
      played(12, (s) => s.respond(200, 2, { upstreamMs: 4000, queuedMs: 3000 })).with(
        throttle({ inFlight: 4, queued: 20 }),
      ),
  ],
  [
    'a login page for every call',
    'network',
    'Something in front of the partner responds in its place',
    () => played(12, (s) => s.respond(200, 5)).play(20, (s) => s.respondForeign(5)),
  ],
  [
    'a maintenance page of the partner',
    'partner',
    'The partner sends web pages or redirects instead of API responses (route stock)',
    () =>
      played(30, (s) =>
        s.respond(200, 50, { route: 'orders' }).respondForeign(2, { route: 'stock', cause: 'foreign_partner' }),
      ).with(twoRoutes),
  ],
  [
    'three foreign responses in a minute',
    'network',
    'Something in front of the partner responds in its place',
    () =>
      played(300, (s, second) => (second % 20 === 0 ? s.respond(200) : s)).play(100, (s, second) =>
        second % 20 === 0 ? s.respondForeign() : s,
      ),
  ],
  [
    'some foreign responses among those of the API',
    'none',
    'Healthy',
    () => played(60, (s) => s.respond(200, 2).respondForeign(8)),
  ],
  [
    'JSON again after a login page',
    'none',
    'Recovered: Something in front of the partner responds in its place',
    () => played(40, (s) => s.respondForeign(5)).play(4, (s) => s.respond(200, 5)),
  ],
  [
    'hung',
    'partner',
    'The partner does not respond',
    () =>
      played(12)
        .hold(4, 11_000)
        .with(throttle({ inFlight: 4, queued: 30 })),
  ],
  [
    'hung, with clients that leave after two seconds',
    'partner',
    'The partner does not respond',
    () =>
      played(12, (s) =>
        s.attempt('client_left', 2, { upstreamMs: 800 }).attempt('client_left', 1, { upstreamMs: 2000 }),
      ).hold(4, 2000),
  ],
  [
    'all places held by clients that do not read, and one request waits',
    'application',
    'Clients do not read their responses: 70 of them, with 60 of 64 places in flight',
    () => played(12, (s) => s.respond(200, 1)).with(throttle({ ...unread, queued: 1 })),
  ],
  [
    'all places held by clients that do not read, and no other request comes',
    'application',
    'Clients do not read their responses: 70 of them, with 64 of 64 places in flight',
    () => played(12).with(throttle({ ...unread, stalledInFlight: 64 })),
  ],
  [
    'places held by clients that do not read, while requests time out in the queue and their clients leave',
    'application',
    'Clients do not read their responses: 70 of them, with 60 of 64 places in flight',
    () => played(40, (s) => s.reject('timeout', 1).reject('client_left', 1)).with(throttle({ ...unread, queued: 40 })),
  ],
  [
    'responses that were broken off, as their clients did not read',
    'application',
    'Clients do not read their responses: 24 responses broken off',
    () =>
      played(12, (s) => {
        s.respond(200, 2).leave(2, { upstreamMs: 40 });
        s.played.count('responses_broken_off_total', { route: 'default' }, 2);
      }),
  ],
  [
    'a few clients that do not read, beside a partner that hangs',
    'partner',
    'The partner does not respond',
    () =>
      played(12)
        .hold(60, 11_000)
        .with(throttle({ ...unread, stalledResponses: 4, stalledInFlight: 4, queued: 30 })),
  ],
  [
    '429 with Retry-After 20',
    'limit',
    'The rate limit of the partner is reached',
    () =>
      played(2, (s) => s.respond(200, 5))
        .respond(429)
        .play(8)
        .with(throttle({ pausedMs: 12_000, queued: 30, recentSignals: [with429] })),
  ],
  [
    'refusals at any rate',
    'limit',
    'The partner refuses 25 % of the calls at any rate',
    () =>
      played(10, (s) => s.attempt('rate_limited', 2).respond(200, 5).respond(429)).with(
        throttle({
          learned: { kind: 'unknown', rate: 500, confidence: 'none', refusedShare: 0.25, since: 0 },
          recentSignals: [with429],
        }),
      ),
  ],
  [
    'one client that waits for the end of a pause',
    'limit',
    'The rate limit of the partner is reached',
    () =>
      played(2, (s) => s.respond(200))
        .respond(429)
        .play(8)
        .with(throttle({ pausedMs: 12_000, queued: 1, recentSignals: [with429] })),
  ],
  [
    'an own rate that is too low',
    'setting',
    'The configured rate is too low for the demand: 2 requests per second',
    () =>
      played(12, (s) => s.respond(200, 2, { queuedMs: 4000 }).reject('expected_wait', 8)).with(
        throttle({ mode: 'static', rate: 2, queued: 9, queueMax: 10 }),
      ),
  ],
  [
    'a highest rate that is too low',
    'setting',
    'The configured highest rate is too low',
    () => played(12, (s) => s.respond(200, 2, { queuedMs: 4000 })).with(throttle({ rate: 2, maxRate: 2, queued: 9 })),
  ],
  [
    'a rate of auto below the demand, without a highest one',
    'limit',
    'The rate limit of the partner is reached',
    () => played(12, (s) => s.respond(200, 2, { queuedMs: 4000 })).with(throttle({ rate: 2, queued: 9 })),
  ],
  [
    'a burst that does not fit into the queue, at a tenth of the configured rate',
    'setting',
    'The queue is too short for the bursts of the application: 1000 places',
    () =>
      played(60, (s) => s.respond(200, 5))
        .reject('full', 50)
        .play(1)
        .with(throttle({ mode: 'static', rate: 50 })),
  ],
  [
    'clients that leave after a second, while the partner needs 1.5 s',
    'application',
    'The clients leave before the end of their responses, after about 900 ms',
    () =>
      played(60, (s) => s.leave(4, { upstreamMs: 1000 }))
        .hold(4, 900)
        .with(throttle({ inFlight: 4 })),
  ],
  [
    'resets of POSTs beside GETs that get responses',
    'unclear',
    'Partner or network: connections break after the request was sent, for POST only',
    () =>
      played(12, (s) => {
        s.respond(200, 3).fail('reset_after_sent', 3, 'default', 5, 'POST');
      }),
  ],
  [
    'a queue that is too short',
    'setting',
    'The queue is too short',
    () => played(12, (s) => s.respond(200, 20).reject('full', 10)),
  ],
  [
    'too few places in flight',
    'setting',
    'Too few requests may be in flight',
    () =>
      played(12, (s) => s.respond(200, 20, { queuedMs: 2000 })).with(
        throttle({ mode: 'static', inFlight: 2, inFlightLimit: 2, queued: 50 }),
      ),
  ],
  [
    'a certificate that has expired',
    'partner',
    'The certificate of the partner has expired',
    () => played(12, (s) => s.fail('certificate_expired', 3)),
  ],
  [
    'resets of every POST',
    'unclear',
    'Partner or network: connections break after the request was sent',
    () => played(12, (s) => s.fail('reset_after_sent', 3).respond(200, 3)),
  ],
  [
    'one of two routes refuses connections',
    'partner',
    'The partner refuses connections (route stock)',
    () =>
      played(12, (s) => s.fail('connection_refused', 3, 'stock').respond(200, 9, { route: 'orders' })).with(twoRoutes),
  ],
  [
    'HTML 403 of a firewall',
    'network',
    'A firewall or proxy refuses the calls',
    () =>
      played(12, (s) =>
        s.respond(403, 4).played.count('upstream_faults_total', { route: 'default', cause: 'intercepted' }, 4),
      ),
  ],
  [
    'insufficient scope',
    'token',
    'The token lacks a scope',
    () => played(12, (s) => s.respond(403, 4).played.count('insufficient_scope_total', { route: 'default' }, 4)),
  ],
  ['JSON 403 for every call', 'token', 'The partner does not permit', () => played(9, (s) => s.respond(403, 4))],
  [
    'a burst of 422',
    'application',
    'The partner refuses requests of the application (422)',
    () => played(12, (s) => s.respond(422, 8).respond(200, 2)),
  ],
  [
    'clients that leave before their turn',
    'application',
    'The clients leave before their turn',
    () =>
      played(12, (s) => s.respond(200, 1, { queuedMs: 400 }).reject('client_left', 6)).with(
        throttle({ mode: 'static', rate: 1, queued: 3 }),
      ),
  ],
  [
    '403 for a foreign Host',
    'application',
    'The sidecar refuses requests of the application (HOST_NOT_ALLOWED)',
    () => played(12, (s) => s.reply('HOST_NOT_ALLOWED', 2, 'default', 403)),
  ],
  [
    'the egress proxy is down',
    'network',
    'The egress proxy cannot be used',
    () => played(12, (s) => s.fail('egress_proxy', 3)),
  ],
  [
    'a wrong secret',
    'token',
    'No token: client authentication failed (invalid_client)',
    () => played(12, (s) => s.reply('TOKEN_REJECTED', 3)).with({ tokens: [wrongSecret] }),
  ],
  [
    'a token outage, without requests',
    'token',
    'No token: the token endpoint is not available',
    () => played(12).with({ tokens: [outage] }),
  ],
  ...['auth.clientSecret', 'auth.tokenFile', 'auth.extraParameters.api_key', 'auth.extraHeaders.X-Key'].map(
    (setting) =>
      [
        `no file of ${setting}`,
        'token',
        'No token: a file of the client cannot be used',
        () => played(12).with({ tokens: [tokenWith('unavailable', `${setting}: the file /t is empty`)] }),
      ] as const,
  ),
  [
    'a drain, while requests fail',
    'none',
    'Shutting down',
    () => played(12, (s) => s.fail('connection_refused', 3)).with({ draining: true }),
  ],
  ['one failure among few calls', 'none', 'Healthy', () => played(12, (s, at) => s.respond(at === 5 ? 503 : 200))],
  ['one call, which failed', 'none', 'Healthy', () => new PlayedVerdict().fail('dns').play(5)],
  ['one long call among others', 'none', 'Healthy', () => played(60, (s) => s.respond(200, 5)).hold(1, 50_000)],
  [
    'waits that nothing causes any more',
    'none',
    'Healthy',
    () => played(12, (s) => s.respond(200, 4, { queuedMs: 3000 })).with(throttle({ inFlight: 0 })),
  ],
  [
    'a queue that refused requests before the rate was raised',
    'none',
    'Healthy',
    () => played(12, (s) => s.respond(200, 2).reject('expected_wait', 8)).play(6, (s) => s.respond(200, 10)),
  ],
  ['no calls', 'none', 'Ready', () => played(12)],
  ['a first token on its way', 'none', 'Starting', () => played(12).with({ tokens: [noToken] })],
  ['404 for every call', 'setting', 'The partner responds 404', () => played(9, (s) => s.respond(404, 2))],
  [
    'bare 503',
    'partner',
    'The partner responds 503 to 50 %',
    () => played(9, (s) => s.respond(503, 2).respond(200, 2)),
  ],
  ['500', 'partner', 'The partner responds 500 to 100 %', () => played(9, (s) => s.respond(500, 2))],
  ['401', 'token', 'The partner does not accept the token', () => played(9, (s) => s.respond(401, 2))],
  [
    'connections that do not open',
    'network',
    'No connection to the partner opens',
    () =>
      played(12, (s) => s.attempt('unreachable', 1, { upstreamMs: 5000 }))
        .hold(4, 9000, false)
        .with(throttle({ inFlight: 4, queued: 30 })),
  ],
];

/** What an incident begins with in production: a minute in which all is well. */
const HEALTHY = (s: PlayedVerdict): unknown => s.respond(200, 12);
const afterHealth = (seconds: number, each: (scene: PlayedVerdict) => unknown): PlayedVerdict =>
  played(60, (s) => void HEALTHY(s)).play(seconds, (s) => void each(s));

const SCENES_AFTER_HEALTH: readonly (readonly [string, string, string, () => PlayedVerdict])[] = [
  [
    'slow with a queue that grows',
    'partner',
    'The partner is slow',
    () => afterHealth(15, (s) => s.respond(200, 5, { upstreamMs: 3000 })).with(throttle({ inFlight: 64, queued: 90 })),
  ],
  [
    'slow at the start, with few places yet',
    'partner',
    'The partner is slow',
    () =>
      played(6, (s) => s.respond(200, 1, { upstreamMs: 2900 }))
        .hold(4, 2900)
        .with(throttle({ inFlight: 4, queued: 20 })),
  ],
  [
    'slow before the first response has come',
    'partner',
    'The partner is slow',
    () =>
      played(4)
        .hold(4, 3500)
        .with(throttle({ inFlight: 4, queued: 20 })),
  ],
  [
    'hung, with clients that leave',
    'partner',
    'The partner does not respond',
    () => afterHealth(12, (s) => s.attempt('client_left', 6, { upstreamMs: 2000 })).hold(12, 1900),
  ],
  [
    'hung at many calls a second',
    'partner',
    'The partner does not respond',
    () => afterHealth(7, (s) => s).hold(30, 6500),
  ],
  [
    'clients that leave after 1.1 s, while the partner has become slower than that',
    'partner',
    'The partner does not respond before the clients leave, after about 1.1 s',
    () => afterHealth(15, (s) => s.leave(4, { upstreamMs: 1100 })).hold(4, 1000),
  ],
  [
    'clients that leave for so long that the usual latency is not known',
    'unclear',
    'Partner or application: no response comes before the clients leave, after about 1.1 s',
    () => afterHealth(320, (s) => s.leave(4, { upstreamMs: 1100 })).hold(4, 1000),
  ],
  [
    'slow, while the process stands still for half of the time',
    'setting',
    'The sidecar gets too little CPU or memory: it stood still for',
    () =>
      afterHealth(15, (s) => {
        s.respond(200, 4, { upstreamMs: 4000, queuedMs: 2000 });
        s.played.now += 1000;
      }),
  ],
  [
    'the process stands still for half of the time, and no call is slow',
    'setting',
    'The sidecar gets too little CPU or memory: it stood still for',
    () => afterHealth(15, (s) => void (HEALTHY(s), (s.played.now += 1000))),
  ],
  [
    'every POST gets 404, beside many more GETs',
    'application',
    'The partner refuses requests of the application (404): every POST',
    () => {
      const post = (code: string) => (s: PlayedVerdict) => {
        s.respond(200, 12).played.count('requests_total', {
          route: 'default',
          method: 'POST',
          code,
          source: 'upstream',
        });
      };
      return played(60, post('201')).play(15, post('404'));
    },
  ],
  [
    'some fail, beside more that are slow',
    'partner',
    'The partner responds 500',
    () => afterHealth(15, (s) => s.respond(200, 5, { upstreamMs: 4000 }).respond(500, 3)),
  ],
  ['403 for all', 'token', 'The partner does not permit', () => afterHealth(15, (s) => s.respond(403, 12))],
  [
    '404 for all',
    'unclear',
    'Application or partner: 404 to every call',
    () => afterHealth(15, (s) => s.respond(404, 12)),
  ],
  [
    '401 for one of ten',
    'token',
    'The partner responds 401 to 1',
    () => afterHealth(15, (s) => s.respond(200, 9).respond(401, 1)),
  ],
  [
    'a route with few of the calls refuses connections',
    'partner',
    'The partner refuses connections (route policies)',
    () =>
      played(60, (s) => s.respond(200, 30, { route: 'orders' }).fail('connection_refused', 1, 'policies')).with({
        throttles: ['orders', 'policies'].map((route) => ({ ...unpaced, route })),
      }),
  ],
  [
    'the token expires, and the endpoint does not respond',
    'token',
    'No token: the token endpoint has not responded yet',
    () => {
      const scene = played(1);
      scene.played.count('token_requests_total', { credential: 'default', outcome: 'ok' });
      return scene.play(60, (s) => void HEALTHY(s)).with({ tokens: [noToken] });
    },
  ],
];

/** What failed from the first call on, and what had worked before. */
const AFTER_SUCCESSES: readonly (readonly [string, string, string, RegExp, () => PlayedVerdict])[] = [
  [
    '404 for all after successes',
    'unclear',
    'It worked until 00:01:00 UTC (720 calls); nothing has changed here since.',
    /`SIDECAR_BASE_URL` worked before/,
    () => afterHealth(15, (s) => s.respond(404, 12)),
  ],
  [
    '404 for all after a reload',
    'setting',
    'It worked until 00:01:00 UTC (720 calls); the configuration was reloaded (upstream.baseUrl) at 00:01:00 UTC.',
    /^Compare the path of `SIDECAR_BASE_URL`/,
    () => {
      const scene = played(60, (s) => void HEALTHY(s));
      scene.successes.observe({ kind: 'configuration-read', outcome: 'ok', lines: ['upstream.baseUrl'] });
      return scene.play(15, (s) => void s.respond(404, 12));
    },
  ],
  [
    '404 for all from the start',
    'setting',
    'It has not worked since the start at 00:00:00 UTC.',
    /^Compare the path of `SIDECAR_BASE_URL`/,
    () => played(9, (s) => s.respond(404, 2)),
  ],
  [
    '401 for all after successes',
    'token',
    'It worked until 00:01:00 UTC (720 calls); nothing has changed here since.',
    /^Ask the partner whether it has withdrawn the access .*replicas/,
    () => afterHealth(15, (s) => s.respond(401, 12)),
  ],
  [
    '401 for all calls of one route, while others are accepted',
    'token',
    'every call of route stock. It worked until',
    /^The same token is accepted for other routes/,
    () => {
      const both = (code: number) => (s: PlayedVerdict) =>
        s.respond(200, 6, { route: 'orders' }).respond(code, 3, { route: 'stock' });
      return played(60, both(200)).with(twoRoutes).play(15, both(401));
    },
  ],
  [
    'a certificate for another host after successes',
    'unclear',
    'It worked until',
    /^Ask the partner for a certificate with this name/,
    () => afterHealth(15, (s) => s.fail('certificate_wrong_host', 12)),
  ],
  [
    'a secret that is not accepted any more',
    'token',
    'It worked until 00:00:00 UTC (1 token)',
    /were accepted before: ask the partner whether the secret/,
    () => withToken({ tokens: [wrongSecret] }),
  ],
  [
    'a renewal that fails while the held token is valid',
    'token',
    'auth.test responded to the token request with 401 and the error "invalid_client". It worked until',
    /were accepted before: ask the partner whether the secret/,
    () =>
      withToken({
        tokens: [{ ...wrongSecret, ...validToken, lastFailure: wrongSecret.lastFailure }],
        alerts: expiring,
      }),
  ],
  [
    'a token endpoint that limits its requests',
    'token',
    'It worked until',
    /^It is requested again by itself.*SIDECAR_REDIS_URL/,
    () => withToken({ tokens: [tokenWith('unavailable', 'auth.test answered the token request with 429')] }),
  ],
  [
    '401 for all from the start',
    'token',
    'It has not worked since the start',
    /`SIDECAR_AUDIENCE`/,
    () => played(9, (s) => s.respond(401, 2)),
  ],
  [
    'refused connections after successes',
    'partner',
    'It worked until 00:01:00 UTC (720 calls); nothing has changed here since.',
    /./,
    () => afterHealth(15, (s) => s.fail('connection_refused', 12)),
  ],
  [
    'no token after tokens',
    'token',
    'It worked until 00:00:00 UTC (1 token); nothing has changed here since.',
    /./,
    () => {
      const scene = new PlayedVerdict();
      scene.played.count('token_requests_total', { credential: 'default', outcome: 'ok' });
      return scene.play(60, (s) => void HEALTHY(s)).with({ tokens: [outage] });
    },
  ],
];

const SCENES_THAT_END: readonly (readonly [string, string, () => PlayedVerdict])[] = [
  [
    'a queue that was full while the partner was slow',
    'The partner is slow',
    () =>
      afterHealth(20, (s) => s.respond(200, 4, { upstreamMs: 4000, queuedMs: 9000 }).reject('expected_wait', 2)).play(
        21,
        (s) => void HEALTHY(s),
      ),
  ],
  [
    'a token endpoint that was down',
    'No token',
    () => afterHealth(20, (s) => s.reply('TOKEN_UNAVAILABLE', 12)).play(21, (s) => void HEALTHY(s)),
  ],
];

describe('the verdict', () => {
  it.each(SCENES_AFTER_HEALTH)('after a healthy minute, %s: %s', (_, where, words, play) => {
    const { verdict } = play();
    expect(verdict).toMatchObject({ where, headline: expect.stringContaining(words) as string });
    expect(verdict.headline.startsWith(words)).toBe(true);
    if (words.includes('slow')) expect(verdict.headline).toMatch(/: \d+(?:\.\d)? s for a typical response$/);
  });

  it.each(AFTER_SUCCESSES)('knows what worked: %s: %s', (_, where, words, advice, play) => {
    const { verdict } = play();
    expect(verdict).toMatchObject({ where, advice: expect.stringMatching(advice) as string });
    expect(verdict.detail).toContain(words);
  });

  it('says nothing of the past while the same works for other calls', () => {
    const { verdict } = afterHealth(15, (s) => s.respond(500, 6).respond(200, 6));
    expect(verdict.detail).not.toMatch(/worked/);
  });

  it.each(SCENES_THAT_END)('says that it has recovered from %s: %s', (_, words, play) => {
    expect(play().verdict).toMatchObject({
      where: 'none',
      headline: expect.stringContaining(`Recovered: ${words}`) as string,
    });
  });

  it.each(SCENES)('%s: %s', (_, where, words, play) => {
    const { verdict } = play();
    expect(verdict).toMatchObject({ where, headline: expect.stringContaining(words) as string });
    expect(verdict.headline.startsWith(words)).toBe(true);
    expect(verdict.headline + (verdict.advice ?? '')).not.toMatch(/\{\w/);
    if (where === 'none') return;
    expect(verdict.detail).not.toBe('');
    expect(verdict.advice).toMatch(/\.$/);
  });

  it('has the own words of the last fault, the route, the share, and since when', () => {
    const one = played(30, (s) => s.respond(200, 9, { route: 'orders' })).with(twoRoutes);
    one.play(10, (s) => void s.fail('connection_refused', 3, 'stock').respond(200, 9, { route: 'orders' }));
    const since = Date.UTC(2026, 10, 1, 0, 0, 31);
    expect(one.verdict).toMatchObject({ code: 'connection_refused', route: 'stock', sinceWallAt: since });
    expect(one.verdict.share).toBeCloseTo(30 / (15 * 9 + 30));
    expect(one.verdict.detail).toContain('30 requests failed, of 165 in the last 15 seconds');
    expect(one.verdict.detail).toContain('connection_refused in its own words');
  });

  it.each([15, 25, 45, 90, 200])(
    'says since when requests are delayed, after %i s of it, to some seconds',
    (seconds) => {
      const begin = Date.UTC(2026, 10, 1, 0, 1);
      const queueing = throttle({ inFlight: 64, queued: 90 });
      const slow = afterHealth(seconds, (s) => s.respond(200, 5, { upstreamMs: 3000 })).with(queueing);
      const waiting = afterHealth(seconds, (s) => s.respond(200, 5, { queuedMs: 4000 })).with(
        throttle({ mode: 'static', rate: 5, queued: 20 }),
      );
      for (const { verdict } of [slow, waiting])
        expect(Math.abs((verdict.sinceWallAt ?? 0) - begin), verdict.headline).toBeLessThanOrEqual(10_000);
    },
  );

  it('names the larger of two causes, and the other', () => {
    const two = played(20, (s) => s.respond(500, 3).fail('reset_after_sent').respond(200, 4));
    expect(two.verdict).toMatchObject({ where: 'partner', code: '500' });
    expect(two.verdict.other).toMatch(/^Partner or network/);
    const slow = played(20, (s) => s.respond(429, 2).respond(200, 8, { upstreamMs: 4000 }));
    expect(slow.verdict.where).toBe('partner');
    expect(slow.verdict.other).toMatch(/^The rate limit/);
  });

  it('a route that fails has the share of its own requests, beside a route with many more', () => {
    const play = (each: (s: PlayedVerdict) => void) =>
      played(30, (s) => {
        s.respond(200, 40, { route: 'orders' });
        each(s);
      }).with(twoRoutes);
    const all = play((s) => s.respond(500, 2, { route: 'stock' }));
    expect(all.verdict.headline).toBe('The partner responds 500 to every call of route stock');
    const some = play((s) => s.respond(500, 1, { route: 'stock' }).respond(200, 3, { route: 'stock' }));
    expect(some.verdict.headline).toBe('The partner responds 500 to 25 % of the calls of route stock');
    const refused = play((s) => s.fail('connection_refused', 2, 'stock'));
    expect(refused.verdict.detail).toMatch(
      /^30 requests failed, of 630 in the last 15 seconds: every call of route stock\./,
    );
  });

  it('has gone as soon as the calls of its route succeed again, and not when those of others do', () => {
    const one = played(30, (s) => s.respond(200, 40, { route: 'orders' }).respond(500, 2, { route: 'stock' }));
    one.with(twoRoutes).play(3, (s) => void s.respond(200, 40, { route: 'orders' }));
    expect(one.verdict).toMatchObject({ where: 'partner', route: 'stock' });
    one.play(3, (s) => void s.respond(200, 40, { route: 'orders' }).respond(200, 2, { route: 'stock' }));
    expect(one.verdict.headline).toMatch(/^Recovered: The partner responds 500 to every call of route stock/);
  });

  it('does not come and go while half of the calls fail at random', () => {
    let seed = 7;
    const scene = played(20, (s) => s.respond(200, 5));
    for (let second = 0; second < 120; second++) {
      scene.play(1, (s) => {
        for (let call = 0; call < 10; call++) {
          seed = (seed * 48_271) % 2_147_483_647;
          s.respond(seed % 2 === 0 ? 500 : 200);
        }
      });
      if (second > 2) expect(scene.verdict.where).toBe('partner');
    }
  });

  it('a stated pause has its end and its begin', () => {
    const at = Date.UTC(2026, 10, 1, 0, 0, 2);
    const signal = { wallAt: at, status: 429, pauseMs: 3_600_000, stated: true, fields: { 'retry-after': 3600 } };
    const paused = throttle({ pausedMs: 3_600_000 - 98_000, queued: 3, recentSignals: [signal] });
    const { verdict } = played(2, (s) => s.respond(200, 5))
      .respond(429)
      .play(98)
      .with(paused);
    expect(verdict.detail).toContain('Paused until 01:00:02 UTC, as the partner stated.');
    expect(verdict.sinceWallAt).toBe(at);
  });

  it('quotes what the partner says in a 401', () => {
    const scene = played(9, (s) => s.respond(401, 2));
    scene.faults.push({ route: 'default', cause: 'unauthorized', detail: 'the partner says "expired"', wallAt: 0 });
    expect(scene.verdict.detail).toContain('The partner says "expired".');
  });

  it('names the clock where an assertion is refused for its time, and not where a secret has expired', () => {
    const refused = tokenWith('rejected', 'a.test responded with 401 and the error "invalid_client": JWT is expired');
    const jwt = [{ key: 'auth.method', value: 'private_key_jwt', origin: 'default' }];
    const clockSkews = [{ from: 'auth.test', skewMs: 95_000 }];
    const adviceWith = (states: object) => played(9).with({ tokens: [refused], ...states }).verdict.advice;
    expect(adviceWith({ settings: jwt, clockSkews })).toContain('that of auth.test is 95 s ahead of ours');
    expect(adviceWith({ settings: jwt })).toMatch(/^Compare the clocks/);
    expect(adviceWith({ clockSkews })).toContain('SIDECAR_CLIENT_SECRET_FILE');
  });

  it('names no route for a cause of all routes', () => {
    const both = played(12, (s) => s.fail('egress_proxy', 2, 'orders').fail('egress_proxy', 2, 'stock')).with(
      twoRoutes,
    );
    expect(both.verdict).toMatchObject({ route: undefined, headline: 'The egress proxy cannot be used' });
  });

  it('says when a cause has gone, and what it was', () => {
    const gone = played(20, (s) => s.respond(503, 5)).play(1, (s) => void s.respond(200, 1));
    expect(gone.verdict.where).toBe('partner');
    gone.play(40, (s) => void s.respond(200, 5));
    const endedAt = Date.UTC(2026, 10, 1, 0, 0, 20);
    expect(gone.verdict).toMatchObject({ level: 'good', where: 'none', code: '503', sinceWallAt: endedAt });
    expect(gone.verdict.headline).toMatch(/^Recovered: The partner responds 503/);
    expect(gone.verdict.detail).toContain('It ended at 00:00:20 UTC');
    gone.play(320, (s) => void s.respond(200, 5));
    expect(gone.verdict.headline).toBe('Healthy');
  });

  it('sees few calls that all fail, over minutes', () => {
    const rare = played(280, (s, at) => (at % 70 === 0 ? s.fail('dns') : s));
    expect(rare.verdict).toMatchObject({ where: 'network', share: 1 });
  });

  it('does not blame a partner whose faults were repaired by retries', () => {
    const repaired = played(30, (s) =>
      s.respond(200, 5).played.count('upstream_faults_total', { route: 'default', cause: 'reset_after_sent' }, 2),
    );
    expect(repaired.verdict.where).toBe('none');
  });

  it('knows a likely rate limit by what is assumed', () => {
    const likely = played(12, (s) => s.respond(503, 3).respond(200, 6));
    likely.with(throttle({ assumed: [{ status: 503 } as never] }));
    expect(likely.verdict.where).toBe('limit');
    expect(likely.verdict.headline).toMatch(/^Likely the rate limit/);
    expect(likely.verdict.advice).toContain('SIDECAR_THROTTLE_REFUSALS=[{"status":503}]');
  });

  it('a route that waits for the end of a pause is not blamed for what another route does', () => {
    const paused = { ...unpaced, route: 'stock', pausedMs: 12_000, queued: 30, inFlight: 0, recentSignals: [with429] };
    const { verdict } = played(20)
      .hold(4, 8000, true, 'orders')
      .with({ throttles: [{ ...unpaced, route: 'orders', inFlight: 4 }, paused] });
    expect(verdict).toMatchObject({ where: 'limit', route: 'stock' });
    expect(verdict.other).toBe('The partner does not respond (route orders)');
  });

  it('blames a configured highest rate, but not just after a pause', () => {
    // After a refusal that no limit explains, the rate grows until the configured one.
    const learned = { rate: 5, kind: 'unknown', confidence: 'none', since: 0 } as const;
    const scene = played(40, (s) => s.respond(200, 5, { queuedMs: 5000 }));
    const after = (pauseEndedMs: number) => {
      const signal = { ...with429, wallAt: scene.wallNow - pauseEndedMs - with429.pauseMs };
      return scene.with(throttle({ rate: 5, maxRate: 5, learned, queued: 40, recentSignals: [signal] })).verdict.where;
    };
    expect([100, 2000, 20_000, 600_000].map(after)).toEqual(['limit', 'limit', 'setting', 'setting']);
  });

  it('shows a learned limit that holds requests back', () => {
    const learned = played(20, (s) => s.respond(200, 9, { queuedMs: 5000 }));
    learned.with({ throttles: [{ ...limited, pausedMs: 0, queued: 40 }] });
    expect(learned.verdict).toMatchObject({ where: 'limit', level: 'wait' });
    expect(learned.verdict.headline).toContain('about 9.5 requests per second');
  });

  it.each([
    ['that is used up', { used: 100, calls: 100 }],
    ['of which only the reserve is left', { used: 80, calls: 100, reserve: 20 }],
  ])('shows the declared limit %s, and when it opens', (_, figures) => {
    const limits = [
      { ...declared, name: 'minute', calls: 50, per: '1m', used: 10 },
      { ...declared, ...figures },
    ];
    const full = played(12, (s) =>
      s.respond(200, 2, { queuedMs: 5000 }).reply('QUOTA_EXHAUSTED', 6).reject('quota', 6),
    );
    full.with(throttle({ queued: 30, limits }));
    expect(full.verdict).toMatchObject({
      where: 'limit',
      headline: 'A declared limit is reached: day (100 calls per 1d)',
    });
    expect(full.verdict.detail).toContain(
      `${String(figures.used)} of 100 calls are used; calls leave it from 2026-11-02`,
    );
    // A short one may just have opened.
    full.with(throttle({ queued: 30, limits: limits.slice(0, 1) }));
    expect(full.verdict.headline).toBe('A declared limit is reached');
    // With calls left, other waits have other causes.
    full.play(320, (s) => void s.respond(200, 2, { queuedMs: 5000 }));
    expect(full.verdict.headline).not.toContain('declared');
  });

  it('shows the limit that a fleet has learned, not the part of one replica', () => {
    const replica = played(20, (s) => s.respond(200, 2, { queuedMs: 5000 }));
    replica.with({ throttles: [{ ...limited, rate: 2, pausedMs: 0, queued: 40 }] });
    expect(replica.verdict.headline).toContain('about 9.5 requests per second');
  });

  it('shows the latency of the upstream apart from the wait in the queue', () => {
    const healthy = played(20, (s) => s.respond(200, 9, { upstreamMs: 80, queuedMs: 400 }));
    expect(healthy.verdict.detail).toMatch(/upstream p50 [789]\d ms, queue p50 [34]\d\d ms/);
  });

  it('what could not be written a minute ago is past, once it can be written again', () => {
    const alerts = [{ name: 'BearerSidecarUnknownCallsNotRecorded', subject: undefined, value: 3 }] as const;
    const scene = played(12, (s) => s.respond(200, 5)).with({ alerts, unknownCallsFault: 'ENOSPC' });
    expect(scene.verdict.headline).toContain('cannot be recorded');
    expect(scene.with({ alerts }).verdict.headline).toBe('Healthy');
    scene.played.count('unknown_call_write_errors_total');
    expect(scene.play(1).verdict.headline).toContain('cannot be recorded');
  });

  it('shows an alert where no request explains it', () => {
    const alert = { name: 'BearerSidecarReloadFailed', subject: undefined, value: 1 } as const;
    const { verdict } = played(12, (s) => s.respond(200, 5)).with({ alerts: [alert] });
    expect(verdict).toMatchObject({ level: 'wait', where: 'setting', code: alert.name });
    expect(verdict.headline).toBe('The changed configuration is not in use');
    expect(verdict.advice).toContain('SIGHUP');
  });

  it('has words for every fault', () => {
    for (const cause of FAULT_CAUSES) {
      const { verdict } = played(12, (s) => s.fail(cause, 3));
      expect([cause, verdict.where]).toEqual([cause, CAUSES[cause].where]);
      expect(verdict.detail).toContain('in its own words');
    }
  });

  it('sees a credential without a token beside one with', () => {
    const one = played(12, (s) => s.respond(200, 5));
    one.with({ tokens: [validToken, { ...outage, credential: 'second' }] });
    expect(one.verdict.where).toBe('token');
    expect(one.verdict.headline).toContain('for second');
  });

  it('names the credential without a token before one whose renewal fails', () => {
    const { consecutiveFailures, lastFailure } = outage;
    const both = played(12, (s) => s.respond(200, 5));
    both.with({
      tokens: [
        { ...validToken, consecutiveFailures, lastFailure },
        { ...outage, credential: 'second' },
      ],
    });
    expect(both.verdict.headline).toContain('No token for second');
  });
});
