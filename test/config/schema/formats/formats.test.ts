/** Every format, through the variable of a setting that has it. */
import { describe, expect, test } from 'vitest';
import { configOf, problemsOf } from '../../base-env.ts';

describe('whole numbers', () => {
  test.each([
    ['0', 0],
    ['1', 1],
    ['86400000', 86_400_000],
  ])('%j is read', (text, value) => {
    expect(configOf({ SIDECAR_BODY_IDLE_TIMEOUT_MS: text }).upstream.bodyIdleTimeoutMs).toBe(value);
  });
  test.each(['10s', '-1', '+1', '1.5', '1e3', '0x10', '010', ' 1', '1 ', '1_000', '86400001', '9'.repeat(400), 'NaN'])(
    '%j is refused',
    (text) => {
      const lines = problemsOf({ SIDECAR_BODY_IDLE_TIMEOUT_MS: text });
      expect(lines).toHaveLength(1);
      expect(lines[0]).toMatch(
        /^upstream\.bodyIdleTimeoutMs \(SIDECAR_BODY_IDLE_TIMEOUT_MS\): found .+; expected a whole/,
      );
    },
  );
  test.each([
    'SIDECAR_BURST',
    'SIDECAR_QUEUE_TIMEOUT_MS',
    'SIDECAR_DEADLINE_MS',
    'SIDECAR_RETRY_ATTEMPTS',
    'SIDECAR_MAX_IN_FLIGHT',
  ])('%s cannot be 0', (variable) => {
    expect(problemsOf({ [variable]: '0' })).toHaveLength(1);
  });
});

describe('rate', () => {
  test.each([
    ['auto', 'auto'],
    ['50', 50],
    ['0.5', 0.5],
  ])('%j is read', (text, value) => {
    expect(configOf({ SIDECAR_RATE: text }).throttle.rate).toBe(value);
  });
  test.each(['0', '0.0', '-1', 'Auto', '10/s', '.5', '1e3', 'Infinity', '1000001'])('%j is refused', (text) => {
    expect(problemsOf({ SIDECAR_RATE: text })).toEqual([
      expect.stringMatching(/^throttle\.rate \(SIDECAR_RATE\): found/),
    ]);
  });
});

describe('log.sample', () => {
  test.each([
    ['0', 0],
    ['0.05', 0.05],
    ['1', 1],
    ['1.0', 1],
  ])('%j is read', (text, value) => {
    expect(configOf({ SIDECAR_LOG_SAMPLE: text }).log.sample).toBe(value);
  });
  test.each(['1.1', '-0.1', '5%', '.5', '1e-1', 'NaN', 'half', '0,5'])('%j is refused', (text) => {
    expect(problemsOf({ SIDECAR_LOG_SAMPLE: text })).toEqual([
      expect.stringMatching(/^log\.sample \(SIDECAR_LOG_SAMPLE\): found .* expected a number from 0 to 1/),
    ]);
  });
});

describe('throttle.maxRate', () => {
  test.each([
    ['', undefined],
    ['50', 50],
    ['0.5', 0.5],
  ])('%j is read', (text, value) => {
    expect(configOf({ SIDECAR_THROTTLE_MAX_RATE: text }).throttle.maxRate).toBe(value);
  });
  test.each(['0', 'auto', '-1', '10/s', 'none', '1000001'])('%j is refused', (text) => {
    expect(problemsOf({ SIDECAR_THROTTLE_MAX_RATE: text })).toEqual([
      expect.stringMatching(/^throttle\.maxRate \(SIDECAR_THROTTLE_MAX_RATE\): found .* expected a number of permits/),
    ]);
  });
});

describe('booleans', () => {
  test.each([
    ['true', true],
    ['false', false],
  ])('%j is read', (text, value) => {
    expect(configOf({ SIDECAR_WEBSOCKET: text }).upstream.websocket).toBe(value);
  });
  test.each(['1', '0', 'yes', 'no', 'TRUE', 'on', ' true', 'null'])('%j is refused', (text) => {
    expect(problemsOf({ SIDECAR_WEBSOCKET: text })).toEqual([
      `upstream.websocket (SIDECAR_WEBSOCKET): found "${text}"; expected true or false`,
    ]);
  });
});

describe('addresses to listen on', () => {
  test.each([
    ['localhost:0', { kind: 'tcp', host: 'localhost', port: 0 }],
    ['LOCALHOST:8080', { kind: 'tcp', host: 'localhost', port: 8080 }],
    ['127.0.0.2:65535', { kind: 'tcp', host: '127.0.0.2', port: 65_535 }],
    ['[::1]:80', { kind: 'tcp', host: '::1', port: 80 }],
    ['[0:0:0:0:0:0:0:1]:80', { kind: 'tcp', host: '::1', port: 80 }],
    ['unix:/run/sidecar.sock', { kind: 'unix', path: '/run/sidecar.sock' }],
  ])('%j is read', (text, address) => {
    expect(configOf({ SIDECAR_LISTEN: text }).listen.address).toEqual(address);
  });
  test.each([
    '8080',
    ':8080',
    'localhost',
    'localhost:',
    'localhost:65536',
    'localhost:-1',
    '::1:80',
    '[::1]',
    '[nope]:80',
    '256.0.0.1:80',
    '127.1:80',
    'http://localhost:80',
    'local host:80',
    '*:80',
    'unix:relative',
    'unix:',
    `unix:/${'x'.repeat(107)}`,
  ])('%j is refused', (text) => {
    expect(problemsOf({ SIDECAR_LISTEN: text })).toEqual([
      expect.stringMatching(/^listen\.address .*expected localhost:PORT/),
    ]);
  });
});

describe('allowed hosts', () => {
  test('names, addresses and ports, normalized', () => {
    expect(
      configOf({ SIDECAR_ALLOWED_HOSTS: 'LocalHost, app_1:8080,[0:0::1],10.0.0.1:0' }).listen.allowedHosts,
    ).toEqual([
      { host: 'localhost', port: undefined },
      { host: 'app_1', port: 8080 },
      { host: '[::1]', port: undefined },
      { host: '10.0.0.1', port: 0 },
    ]);
  });
  test.each(['*', 'a,,b', 'a,', 'http://a', 'a/b', '::1', 'a:b', '-a', 'user@a', ','])('%j is refused', (text) => {
    expect(problemsOf({ SIDECAR_ALLOWED_HOSTS: text })).toEqual([
      expect.stringMatching(/^listen\.allowedHosts .*host\[:port\]/),
    ]);
  });
});

describe('allowed origins', () => {
  test.each([
    ['https://app.example.com', ['https://app.example.com']],
    ['http://LOCALHOST:3000,https://[::1]:8443', ['http://localhost:3000', 'https://[::1]:8443']],
    ['chrome-extension://abcdefgh', ['chrome-extension://abcdefgh']],
  ])('%j is read', (text, origins) => {
    expect(configOf({ SIDECAR_ALLOWED_ORIGINS: text }).listen.allowedOrigins).toEqual(origins);
  });
  test.each([
    '*',
    'null',
    'localhost:3000',
    'https://a/',
    'https://a/b',
    'https://a?b',
    'https://*.a',
    'https://u@a',
    'file://',
  ])('%j is refused', (text) => {
    expect(problemsOf({ SIDECAR_ALLOWED_ORIGINS: text })).toEqual([expect.stringMatching(/an exact origin/)]);
  });
  test.each(['https://a:443', 'http://a:80'])('%j is refused with what a browser sends', (text) => {
    expect(problemsOf({ SIDECAR_ALLOWED_ORIGINS: text })[0]).toContain(
      `browsers send it as ${text.replace(/:\d+$/, '')}`,
    );
  });
});

describe('URLs', () => {
  test.each([
    'https://api.example.com',
    'https://api.example.com:8443/a/b/',
    'HTTPS://API.example.com/%20',
    'http://127.0.0.1:1',
    'http://[::1]:1/x',
  ])('%j is read', (text) => {
    expect(configOf({ SIDECAR_BASE_URL: text }).upstream.baseUrl.href).toBe(new URL(text).href);
  });
  test.each([
    'api.example.com',
    'ftp://a',
    'https:/a',
    'https:\\\\a',
    'https://',
    ' https://a',
    'https://a b',
    'https://a:99999',
    'https:///a',
  ])('%j is refused', (text) => {
    expect(problemsOf({ SIDECAR_BASE_URL: text })).toEqual([
      expect.stringMatching(/^upstream\.baseUrl .*expected an absolute https: URL/),
    ]);
  });
  test.each([
    ['https://a/?', 'without a query'],
    ['https://a/x?key=sesame', 'without a query'],
    ['https://a/#sesame', 'without a query'],
    ['https://user:sesame@a/', 'without user information'],
    ['https://user:sesame/pw@a/', 'an absolute https: URL'],
    ['https://user:a@sesame@a/', 'without user information'],
    ['https://user:a@sesame@a b/', 'an absolute https: URL'],
    ['https://user@a/', 'without user information'],
    ['user:sesame@host', 'an absolute https: URL'],
  ])('%j is refused without showing a secret', (text, reason) => {
    for (const variable of ['SIDECAR_BASE_URL', 'SIDECAR_AUTH_URL']) {
      const [line, ...others] = problemsOf({ [variable]: text });
      expect(line).toContain(reason);
      expect(line).not.toContain('sesame');
      expect(others).toEqual([]);
    }
  });
  test.each([
    ['https://a', 'oauth/token', 'https://a/oauth/token'],
    ['https://a/', '/oauth/token', 'https://a/oauth/token'],
    ['https://a/tenant//', '/token', 'https://a/tenant/token'],
    ['https://a/tenant', 'token/', 'https://a/tenant/token/'],
    ['https://a/', '/oauth/token?grant=x', 'https://a/oauth/token?grant=x'],
    ['https://a/b', 'token?a=//b/../?c&d=%zz', 'https://a/b/token?a=//b/../?c&d=%zz'],
  ])('the token URL of %j and %j is %j', (url, path, joined) => {
    const { endpoint } = configOf({ SIDECAR_AUTH_URL: url, SIDECAR_AUTH_TOKEN_PATH: path }).auth;
    expect(endpoint).toEqual({ kind: 'url', url: new URL(joined) });
  });
  test.each([
    '//a',
    '/a//b',
    '/../a',
    '/a/%2e%2E',
    '/a?',
    '/a?b#c',
    '/a?b=********',
    '/a?b c',
    "/a?'",
    '/a?b\n',
    '?a=b',
    '/../a?b',
    '/a#b',
    '/a b',
    '/',
    'https://a/b',
  ])('the token path %j is refused', (path) => {
    expect(problemsOf({ SIDECAR_AUTH_TOKEN_PATH: path })).toEqual([expect.stringMatching(/^auth\.tokenPath /)]);
  });
});

test.each([
  ['0600', 0o600],
  ['660', 0o660],
  ['0777', 0o777],
])('socket mode %j is read as octal', (text, mode) => {
  expect(configOf({ SIDECAR_LISTEN_SOCKET_MODE: text }).listen.socketMode).toBe(mode);
});

test.each(['0o600', '800', '1777', '0x1ff', '60'])('socket mode %j is refused', (text) => {
  expect(problemsOf({ SIDECAR_LISTEN_SOCKET_MODE: text })).toEqual([
    expect.stringMatching(/^listen\.socketMode .*octal/),
  ]);
});

test.each(['INFO', 'verbose'])('log level %j is refused', (text) => {
  expect(problemsOf({ SIDECAR_LOG_LEVEL: text })).toEqual([
    expect.stringMatching(/^log\.level .*one of fatal, error, warn/),
  ]);
});
