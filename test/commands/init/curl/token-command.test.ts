/** What init understands of curl commands: printed ones come back, documents' forms are known, hostile text is one fault. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { describeCommand, isCurlCommand, readPartnerText } from '../../../../src/commands/init/partner-text.ts';
import type { InitSettingKey } from '../../../../src/commands/init/init-settings.ts';
import { splitCommands } from '../../../../src/commands/init/curl/shell-words.ts';
import { joinUrl } from '../../../../src/config/schema/formats/url.ts';
import { anyCodePoint } from '../../../support/code-points.ts';
import { printCurl, printedRequests, styles } from './curl-printer.ts';
import { readCpuMs } from '../../../support/cpu-time.ts';

const ORIGIN = 'https://login.example.com';

function understand(text: string) {
  const reading = readPartnerText(text);
  if (reading.kind !== 'command') throw new Error(JSON.stringify(reading));
  const { command } = reading;
  const get = (key: InitSettingKey): string | undefined => command.settings.get(key);
  return { ...command, get, ignored: command.ignored, placeholders: command.placeholders, secret: command.secret };
}

describe('a command printed for a POSIX shell', () => {
  test('comes back word by word', () => {
    fc.assert(
      fc.property(printedRequests(ORIGIN), styles('posix'), (request, style) => {
        const { text, words } = printCurl(request, style);
        expect(splitCommands(text)).toEqual({ kind: 'split', commands: [['curl', ...words]] });
        expect(isCurlCommand(text)).toBe(true);
      }),
      { numRuns: 500 },
    );
  });

  test('comes back as settings and a secret', () => {
    fc.assert(
      fc.property(printedRequests(ORIGIN), styles('posix'), (request, style) => {
        const { get, secret, ignored, placeholders } = understand(printCurl(request, style).text);
        const { client, url } = request;
        const fields = Object.fromEntries(request.fields);
        expect(joinUrl(get('auth.url') ?? '', get('auth.tokenPath') ?? '').href).toBe(url);
        expect([get('auth.clientId'), secret]).toEqual([client.id, client.secret]);
        expect(get('auth.method')).toBe(client.by === 'form' ? 'client_secret_post' : 'client_secret_basic');
        expect(get('auth.audience')).toBe(fields.audience);
        expect(get('auth.scope')).toBe(fields.scope);
        expect(JSON.parse(get('auth.extraParameters') ?? '{}')).toEqual(
          fields.tenant === undefined ? {} : { tenant: fields.tenant },
        );
        expect(placeholders).toEqual([]);
        expect(JSON.stringify(ignored)).not.toContain(client.secret);
      }),
      { numRuns: 300 },
    );
  });
});

const BASIC = Buffer.from('my-app:sesame-open').toString('base64');

describe("forms of partners' documents", () => {
  test.each([
    [
      'a prompt and a pipe',
      `$ curl -s -u my-app:sesame-open ${ORIGIN}/oauth/token -d grant_type=client_credentials | jq .`,
    ],
    [
      'a code fence',
      `\`\`\`bash\ncurl -u 'my-app:sesame-open' -d grant_type=client_credentials ${ORIGIN}/oauth/token\n\`\`\``,
    ],
    [
      'a blank after the backslash',
      `curl -u my-app:sesame-open \\ \n  -d grant_type=client_credentials \\\n  ${ORIGIN}/oauth/token`,
    ],
    [
      'lines ended by CR LF',
      `curl -u my-app:sesame-open \\\r\n  -d grant_type=client_credentials \\\r\n  ${ORIGIN}/oauth/token\r\n`,
    ],
    [
      'an option with an equals sign',
      `curl --user=my-app:sesame-open --data=grant_type=client_credentials ${ORIGIN}/oauth/token`,
    ],
    [
      'a redirection',
      `curl -u my-app:sesame-open -d grant_type=client_credentials ${ORIGIN}/oauth/token 2>/dev/null >token.json`,
    ],
    [
      'user information in the URL',
      `curl -d grant_type=client_credentials https://my-app:sesame-open@login.example.com/oauth/token`,
    ],
    [
      'no backslash at the ends of its lines',
      `curl -X POST\n  "${ORIGIN}/oauth/token"\n  -u my-app:sesame-open\n\n  -d grant_type=client_credentials`,
    ],
    [
      'lines that were joined with their backslashes',
      `curl -u my-app:sesame-open \\ -d grant_type=client_credentials \\  ${ORIGIN}/oauth/token`,
    ],
    ['no scheme', `curl -u my-app:sesame-open -d grant_type=client_credentials login.example.com/oauth/token`],
    [
      'a body over several lines',
      `curl -u my-app:sesame-open ${ORIGIN}/oauth/token -d '\n  grant_type=client_credentials&\n  x=\n'`,
    ],
    [
      'a comment and a path',
      `# get a token\n/usr/bin/curl --user my-app:sesame-open ${ORIGIN}/oauth/token --data grant_type=client_credentials`,
    ],
  ])('%s', (_, text) => {
    const { get, secret, tokenUrl, placeholders } = understand(text);
    expect([get('auth.url'), get('auth.tokenPath')]).toEqual([ORIGIN, '/oauth/token']);
    expect([get('auth.clientId'), secret]).toEqual(['my-app', 'sesame-open']);
    expect(get('auth.method')).toBe('client_secret_basic');
    expect(tokenUrl).toBe(`${ORIGIN}/oauth/token`);
    expect(placeholders).toEqual([]);
  });

  test('a JSON body, of one line or several', () => {
    const json = JSON.stringify(
      {
        client_id: 'my-app',
        client_secret: 'sesame-open',
        audience: 'https://api.example.com',
        grant_type: 'client_credentials',
      },
      null,
      2,
    );
    const { get, secret, ignored } = understand(
      `curl --request POST --url ${ORIGIN}/oauth/token --header 'content-type: application/json' --data '${json}'`,
    );
    expect([get('auth.clientId'), secret, get('auth.audience')]).toEqual([
      'my-app',
      'sesame-open',
      'https://api.example.com',
    ]);
    expect(get('auth.method')).toBe('client_secret_post');
    expect([get('auth.bodyFormat'), get('auth.grantType'), ignored]).toEqual(['json', undefined, []]);
  });

  test('the query stays as it is, credentials too, and is shown without values', () => {
    const query = 'grant_type=client_credentials&client_id=my-app&client_secret=sesame-open&v=1';
    const { get, tokenUrl, ignored } = understand(`curl -X POST "${ORIGIN}/services/token?${query}"`);
    expect([get('auth.method'), get('auth.grantType'), get('auth.tokenPath')]).toEqual([
      'none',
      '',
      `/services/token?${query}`,
    ]);
    expect(tokenUrl).not.toContain('sesame');
    expect(ignored).toEqual([expect.stringContaining('auth.tokenPath')]);
  });

  test('a call of the API beside it gives the base URL', () => {
    const { get, secret } = understand(
      `curl -u my-app:sesame-open -d 'grant_type=client_credentials&scope=read' ${ORIGIN}/oauth/token\n` +
        `curl -H "Authorization: Bearer $TOKEN" https://api.example.com/v1/quotes?x=1`,
    );
    expect([get('upstream.baseUrl'), get('auth.url'), get('auth.scope'), secret]).toEqual([
      'https://api.example.com',
      ORIGIN,
      'read',
      'sesame-open',
    ]);
  });

  test('header fields of a gateway', () => {
    const { get, ignored } = understand(
      `curl -u my-app:sesame-open -H 'X-Api-Key: k-1' -H 'Cookie: a=b' -H 'Accept: */*' -d grant_type=client_credentials ${ORIGIN}/oauth/token -k`,
    );
    expect(JSON.parse(get('auth.extraHeaders') ?? '')).toEqual({ 'X-Api-Key': 'k-1' });
    expect(ignored).toEqual(['the header field Cookie', expect.stringMatching(/^-k: .*auth\.caFile/)]);
  });

  test.each([
    ['-u "$CLIENT_ID:$CLIENT_SECRET"', ['client id: $CLIENT_ID', 'client secret: $CLIENT_SECRET']],
    ["-u '<client_id>:<client_secret>'", ['client id: <client_id>', 'client secret: <client_secret>']],
    ['-u <client_id>:<client_secret>', ['client id: <client_id>', 'client secret: <client_secret>']],
    ['-u {{clientId}}:{{clientSecret}}', ['client id: {{clientId}}', 'client secret: {{clientSecret}}']],
    ['-u YOUR_CLIENT_ID:YOUR_CLIENT_SECRET', ['client id: YOUR_CLIENT_ID', 'client secret: YOUR_CLIENT_SECRET']],
    ['-u client_id:client_secret', ['client id: client_id', 'client secret: client_secret']],
    ['-u my-app', ['client secret']],
    ["-H 'Authorization: Basic <base64 of id:secret>'", ['client id', 'client secret']],
    ["-d 'client_id=my-app&client_secret=${CLIENT_SECRET}'", ['client secret: ${CLIENT_SECRET}']],
    ['--data-urlencode "client_secret=$CLIENT_SECRET" -d client_id=my-app', ['client secret: $CLIENT_SECRET']],
    ['-u "%CLIENT_ID%:%CLIENT_SECRET%"', ['client id: %CLIENT_ID%', 'client secret: %CLIENT_SECRET%']],
  ])('placeholders: %s', (options, expected) => {
    const { placeholders, secret } = understand(
      `curl ${options} -d grant_type=client_credentials ${ORIGIN}/oauth/token`,
    );
    expect(secret).toBeUndefined();
    expect(placeholders).toEqual(
      expected.map((text) => expect.stringMatching(new RegExp(`^${text.replaceAll(/[$(){}|]/g, '\\$&')}`)) as string),
    );
  });

  test.each([
    'https://{tenant}.example.com/oauth/token',
    'https://<tenant>.example.com/oauth/token',
    'https://$HOST/oauth/token',
  ])('a placeholder in the URL: %s', (url) => {
    const { get, placeholders } = understand(`curl -u my-app:sesame-open -d grant_type=client_credentials "${url}"`);
    expect(get('auth.url')).toBeUndefined();
    expect(placeholders).toEqual([expect.stringMatching(/^token URL: /)]);
  });
});

test('a part of a secret that looks like a variable is not shown', () => {
  for (const quote of ['', '"']) {
    const text = `curl -u ${quote}my-app:open$Sesame1${quote} -d grant_type=client_credentials ${ORIGIN}/oauth/token`;
    const { placeholders, secret } = understand(text);
    expect(secret).toBeUndefined();
    expect(placeholders).toEqual(['client secret: has a variable in it']);
  }
});

describe('token requests of a form of their own', () => {
  test.each<[string, string, Partial<Record<InitSettingKey, string>>]>([
    [
      'a JSON body with other names',
      `curl ${ORIGIN}/auth/token -H 'Content-Type: application/json' -d '{"clientId":"my-app","clientSecret":"sesame-open"}'`,
      {
        'auth.method': 'none',
        'auth.bodyFormat': 'json',
        'auth.grantType': '',
        'auth.extraParameters': '{"clientId":"my-app","clientSecret":"sesame-open"}',
      },
    ],
    [
      'another grant',
      `curl -u my-app:sesame-open -d 'grant_type=account_credentials&account_id=7' ${ORIGIN}/oauth/token`,
      {
        'auth.method': 'client_secret_basic',
        'auth.grantType': 'account_credentials',
        'auth.extraParameters': '{"account_id":"7"}',
        'auth.clientId': 'my-app',
      },
    ],
    [
      'no audience and no scope',
      `curl -d 'grant_type=client_credentials&client_id=my-app&client_secret=sesame-open' ${ORIGIN}/oauth/token`,
      { 'auth.method': 'client_secret_post', 'auth.clientId': 'my-app' },
    ],
    [
      'a user and a password',
      `curl -d 'grant_type=password&username=my-app&password=sesame-open' ${ORIGIN}/oauth/token`,
      {
        'auth.method': 'none',
        'auth.grantType': 'password',
        'auth.extraParameters': '{"username":"my-app","password":"sesame-open"}',
      },
    ],
    [
      'a user and a password of a client without a secret',
      `curl -d 'grant_type=password&client_id=my-app&username=me&password=sesame-open' ${ORIGIN}/oauth/token`,
      {
        'auth.method': 'none',
        'auth.grantType': 'password',
        'auth.extraParameters': '{"client_id":"my-app","username":"me","password":"sesame-open"}',
      },
    ],
    [
      'an Authorization field of another scheme',
      `curl -H 'Authorization: ID sesame-open' -d grant_type=client_credentials ${ORIGIN}/oauth/token`,
      { 'auth.method': 'none', 'auth.extraHeaders': '{"Authorization":"ID sesame-open"}' },
    ],
    [
      'a SAML assertion',
      `curl -d 'grant_type=urn:ietf:params:oauth:grant-type:saml2-bearer&client_id=my-app&assertion=sesame-open' ${ORIGIN}/oauth/token`,
      {
        'auth.method': 'none',
        'auth.grantType': 'urn:ietf:params:oauth:grant-type:saml2-bearer',
        'auth.extraParameters': '{"client_id":"my-app","assertion":"sesame-open"}',
      },
    ],
  ])('%s', (_, text, expected) => {
    const { settings, placeholders } = understand(text);
    const { 'auth.url': url, 'auth.tokenPath': path, ...rest } = Object.fromEntries(settings);
    expect(`${String(url)}${String(path)}`).toMatch(/^https:\/\/login\.example\.com\/(?:auth|oauth)\/token$/);
    expect([rest, placeholders]).toEqual([expected, []]);
    const reading = readPartnerText(text);
    if (reading.kind !== 'command') throw new Error('refused');
    expect(describeCommand(reading.command, (_role, shown) => shown).join('\n')).not.toContain('sesame');
  });
});

describe('a call of the API alone', () => {
  const API = 'https://api.example.com';
  test.each<[string, string, Partial<Record<InitSettingKey, string>>]>([
    ['a bearer token', `-H 'Authorization: Bearer sesame-open'`, {}],
    ['another scheme', `-H 'authorization: ApiKey sesame-open'`, { 'upstream.tokenPrefix': 'ApiKey ' }],
    ['no scheme', `-H 'Authorization: sesame-open'`, { 'upstream.tokenPrefix': '' }],
    [
      'a header field of its own, and a fixed one',
      `-H 'X-Api-Key: sesame-open' -H 'X-Tenant: t-1' -H 'Accept: */*' -H 'Idempotency-Key: 9'`,
      {
        'upstream.tokenHeader': 'X-Api-Key',
        'upstream.tokenPrefix': '',
        'upstream.headers': '{"X-Tenant":"t-1"}',
      },
    ],
    [
      'a key beside a token',
      `-H 'Ocp-Apim-Subscription-Key: k-1' -H 'Authorization: Bearer sesame-open'`,
      { 'upstream.headers': '{"Ocp-Apim-Subscription-Key":"k-1"}' },
    ],
  ])('with %s', (_, options, expected) => {
    const { settings, secret, placeholders } = understand(`curl ${API}/v1/quotes?x=1 ${options}`);
    expect(secret).toBe('sesame-open');
    expect(Object.fromEntries(settings)).toEqual({ 'upstream.baseUrl': API, 'auth.method': 'static', ...expected });
    expect(placeholders).toEqual([]);
  });

  test('with a key in the query alone: the key becomes a parameter of each call', () => {
    const { settings, secret, placeholders } = understand(`curl '${API}/v1/quotes?city=Wien&api_key=s%2B1'`);
    expect(secret).toBeUndefined();
    expect(Object.fromEntries(settings)).toEqual({
      'upstream.baseUrl': API,
      'auth.method': 'static',
      'upstream.query': '{"api_key":"s+1"}',
    });
    expect(placeholders).toEqual([]);
  });

  test.each(['api_key', 'apiKey', 'key', 'appid', 'access_token', 'subscription-key', 'X-Api-Key'])(
    'with %s in its query: that is a key',
    (name) => {
      const { get } = understand(`curl '${API}/v1/quotes?page=2&${name}=k-1'`);
      expect(get('upstream.query')).toBe(JSON.stringify({ [name]: 'k-1' }));
    },
  );

  test.each(['pageToken', 'next_token', 'continuation-token', 'csrf_token', 'sortKey', 'keyword', 'idempotency_key'])(
    'with %s in its query: that is none, since it differs in each call',
    (name) => {
      const { get } = understand(`curl '${API}/v1/quotes?${name}=k-1'`);
      expect([get('upstream.query'), get('auth.method')]).toEqual([undefined, undefined]);
    },
  );

  test('with a key in the query beside a token: the key is named, and goes into the file by hand', () => {
    const { get, secret, ignored } = understand(
      `curl -H 'Authorization: Bearer sesame-open' '${API}/v1/quotes?api_key=k-1'`,
    );
    expect([get('auth.method'), get('upstream.query'), secret]).toEqual(['static', undefined, 'sesame-open']);
    expect(ignored).toEqual(['api_key in the query of the call: write it into upstream.query, in a file']);
  });

  test('with a placeholder of a key in the query: it is named', () => {
    const { get, placeholders } = understand(`curl '${API}/v1/quotes?api_key=YOUR_API_KEY'`);
    expect(get('upstream.query')).toBeUndefined();
    expect(placeholders).toEqual([expect.stringMatching(/^key api_key: /)]);
  });

  test.each(['"Authorization: Bearer $TOKEN"', "'X-Auth-Token: <your token>'", "'X-Api-Key: YOUR_API_KEY'"])(
    'with a placeholder: %s',
    (field) => {
      const { get, secret, placeholders } = understand(`curl -H ${field} ${API}/v1/quotes`);
      expect([get('auth.method'), secret]).toEqual(['static', undefined]);
      expect(placeholders).toEqual([expect.stringMatching(/^token: /)]);
    },
  );

  test('beside a token request gives the header fields of calls', () => {
    const { get, secret } = understand(
      `curl -u my-app:sesame-open -d grant_type=client_credentials ${ORIGIN}/oauth/token\n` +
        `curl -H "Authorization: Token $TOKEN" -H 'X-Api-Key: k-1' ${API}/v1/quotes`,
    );
    expect([get('auth.method'), secret]).toEqual(['client_secret_basic', 'sesame-open']);
    expect([get('upstream.tokenPrefix'), get('upstream.headers')]).toEqual(['Token ', '{"X-Api-Key":"k-1"}']);
  });

  test('beside a token request gives the key in the query of calls', () => {
    const { get, secret } = understand(
      `curl -u my-app:sesame-open -d grant_type=client_credentials ${ORIGIN}/oauth/token\n` +
        `curl -H "Authorization: Bearer $TOKEN" '${API}/v1/quotes?page=2&api_key=k-1'`,
    );
    expect([get('auth.method'), secret]).toEqual(['client_secret_basic', 'sesame-open']);
    expect(get('upstream.query')).toBe('{"api_key":"k-1"}');
  });
});

describe('a command of another shell is one fault', () => {
  test.each(['powershell', 'cmd'] as const)('when it is continued for %s, in any of its quotes', (shell) => {
    fc.assert(
      fc.property(printedRequests(ORIGIN), styles(shell), (request, style) => {
        expect(readPartnerText(printCurl(request, style).text)).toHaveProperty('fault');
      }),
      { numRuns: 500 },
    );
  });

  test.each([
    [`curl.exe -X POST '${ORIGIN}/oauth/token' \`\n  -u 'my-app:sesame-open'`, /PowerShell or cmd\.exe/],
    [`curl ^"${ORIGIN}/oauth/token^" ^\r\n  -H ^"authorization: Basic ${BASIC}^"`, /PowerShell or cmd\.exe/],
    [`PS C:\\Users\\me> curl -u my-app:sesame-open ${ORIGIN}/oauth/token`, /no curl command/],
    [`Invoke-RestMethod -Uri ${ORIGIN}/oauth/token -Headers @{ Authorization = "Basic ${BASIC}" }`, /no curl command/],
  ])('%s', (text, fault) => {
    expect(readPartnerText(text)).toMatchObject({ kind: 'refused', fault: expect.stringMatching(fault) as string });
  });

  test('and its lines are read to the end first', () => {
    const lines = [`curl '${ORIGIN}/oauth/token' \``, "  -u 'my-app:sesame-open' `", "  -d '{", '  "x": 1 }', "'"];
    const kinds = lines.map((_, at) => readPartnerText(lines.slice(0, at + 1).join('\n')).kind);
    expect(kinds).toEqual(['incomplete', 'incomplete', 'incomplete', 'incomplete', 'refused']);
  });
});

describe('what cannot be used is one fault that quotes no value', () => {
  test.each([
    ['an open quote', `curl -u 'my-app:sesame-open ${ORIGIN}`, /quote/],
    ['an open double quote', `curl -u "my-app:sesame-open ${ORIGIN}`, /quote/],
    ['a substitution', `curl -u $(sesame-open`, /\$\( \)/],
    ['a prompt of continued lines', 'curl -u my-app:sesame-open \\\n> https://a.example', /prompt >/],
    ['a value that is missing', `curl ${ORIGIN}/token -d sesame-open -u`, /without its value/],
    ['a trailing continuation', 'curl -u my-app:sesame-open \\', /continues/],
    ['a NUL', 'curl -u my-app:sesame-open\u0000', /U\+0000/],
    ['an escape character', 'curl -u my-app:sesame-open\u001b[2J', /U\+001B/],
    ['1 MB', `curl -d '${'sesame-open'.repeat(100_000)}'`, /longer than 256 KiB/],
    ['typographic quotes', 'curl -u “my-app:sesame-open”', /typographic/],
    [
      'a grant that needs a person',
      `curl -d 'grant_type=authorization_code&code=sesame-open' ${ORIGIN}/oauth/token`,
      /grant authorization_code/,
    ],
    [
      'a signed grant',
      `curl -d 'grant_type=urn:ietf:params:oauth:grant-type:jwt-bearer&assertion=sesame-open' ${ORIGIN}/token`,
      /auth\.grantType/,
    ],
    [
      'an assertion',
      `curl -d 'grant_type=client_credentials&client_assertion=sesame-open' ${ORIGIN}`,
      /private_key_jwt/,
    ],
    ['no URL', 'curl -s', /without a URL/],
    ['no curl', 'wget --user=my-app --password=sesame-open', /no curl command/],
  ])('%s', (_, text, fault) => {
    const reading = readPartnerText(text);
    expect(reading).toMatchObject({ fault: expect.stringMatching(fault) as string });
    expect(JSON.stringify(reading)).not.toContain('sesame');
  });

  test('any text is read without an error, and in time', () => {
    const piece = fc.oneof(
      fc.constantFrom(
        ' ',
        "'",
        '"',
        '$(',
        ')',
        '`',
        '\\',
        '^',
        '\n',
        'curl ',
        '-u ',
        '-d ',
        '--json ',
        '{',
        '&',
        '|',
        '<',
        '>',
        '$x',
        '${',
      ),
      fc.string({ unit: anyCodePoint, maxLength: 5 }),
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 60 }), (pieces) => {
        const reading = readPartnerText(pieces.join(''));
        expect(['empty', 'address', 'command', 'incomplete', 'refused']).toContain(reading.kind);
      }),
      { numRuns: 1500 },
    );
  });

  test.each([
    "'",
    '"',
    '$(',
    '`',
    '\\ ',
    '^',
    ' ',
    '$x',
    '${',
    '<a',
    '{',
    '-u ',
    '%a',
    'your_a_',
    '[a ',
    'a=',
    '&',
    '\n',
    "$'\\x41",
    '""',
    '@',
  ])('a long run of %j takes no long time', (piece) => {
    const usedMs = readCpuMs();
    for (const before of ['curl ', 'curl ^\n-d ', 'curl `\n -d ', "curl -d '", 'curl -H x:'])
      readPartnerText((before + piece.repeat(300_000)).slice(0, 250_000));
    expect(readCpuMs() - usedMs).toBeLessThan(5_000);
  });
});
