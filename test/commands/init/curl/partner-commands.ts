/**
 * Commands as partners' public pages print them, with values of tests for their placeholders and HOST for the host. `call` calls the API
 * with a fixed credential; `token` requests a token.
 */
export interface PartnerCommand {
  readonly partner: string;
  readonly kind: 'token' | 'call';
  readonly text: string;
}

const BASIC = Buffer.from('client-1:sesame-open').toString('base64');

function token(partner: string, text: string): PartnerCommand {
  return { partner, kind: 'token', text };
}

function call(partner: string, text: string): PartnerCommand {
  return { partner, kind: 'call', text };
}

export const PARTNER_COMMANDS: readonly PartnerCommand[] = [
  token(
    'Apigee',
    `curl -X POST "https://HOST/oauth/client_credential/accesstoken?grant_type=client_credentials" \\
  -H "Content-Type: application/x-www-form-urlencoded" \\
  -H "Authorization: Basic ${BASIC}"`,
  ),
  token(
    'PingOne',
    `curl --location --request POST 'https://HOST/abc-123/as/token' \\
--header 'Content-Type: application/x-www-form-urlencoded' \\
--header 'Authorization: Basic ${BASIC}' \\
--data-urlencode 'grant_type=client_credentials'`,
  ),
  token(
    'Auth0',
    `curl --request POST \\
  --url 'https://HOST/oauth/token' \\
  --header 'content-type: application/json' \\
  --data '{"client_id":"client-1","client_secret":"sesame-open","audience":"https://api.example/","grant_type":"client_credentials"}'`,
  ),
  token(
    'Okta',
    `curl --request POST \\
  --url https://HOST/oauth2/default/v1/token \\
  --header 'accept: application/json' \\
  --header 'authorization: Basic ${BASIC}' \\
  --header 'cache-control: no-cache' \\
  --header 'content-type: application/x-www-form-urlencoded' \\
  --data 'grant_type=client_credentials&scope=customScope'`,
  ),
  token(
    'Amazon Cognito',
    `curl -X POST --user client-1:sesame-open 'https://HOST/oauth2/token?client_hint=a' \\
  -H 'Content-Type: application/x-www-form-urlencoded' -d grant_type=client_credentials -d 'scope=res/read res/write'`,
  ),
  token(
    'Microsoft Entra',
    `# Line breaks are for legibility only
curl -X POST -H "Content-Type: application/x-www-form-urlencoded" -d 'client_id=00001111-aaaa&scope=https%3A%2F%2Fgraph.example%2F.default&client_secret=qWgdYAmab0YSkuL1qKv5bPX&grant_type=client_credentials' 'https://HOST/contoso/oauth2/v2.0/token'`,
  ),
  token(
    'Keycloak',
    `curl \\
  -d "client_id=client-1" \\
  -d "client_secret=sesame-open" \\
  -d "grant_type=client_credentials" \\
  "https://HOST/realms/master/protocol/openid-connect/token"`,
  ),
  token(
    'Salesforce',
    `curl -X POST https://HOST/services/oauth2/token -d 'grant_type=client_credentials' -d 'client_id=3MVG9.x' -d 'client_secret=12F3.4'`,
  ),
  token(
    'PayPal',
    `curl -v -X POST "https://HOST/v1/oauth2/token" \\
 -u "client-1:sesame-open" \\
 -H "Accept-Language: en_US" \\
 -H "Content-Type: application/x-www-form-urlencoded" \\
 -d "grant_type=client_credentials"`,
  ),
  token(
    'Amadeus',
    `curl "https://HOST/v1/security/oauth2/token" \\
     -H "Content-Type: application/x-www-form-urlencoded" \\
     -d "grant_type=client_credentials&client_id=client-1&client_secret=sesame-open"`,
  ),
  token(
    'Sabre',
    `curl -X POST https://HOST/v2/auth/token \\
  -H 'Authorization: Basic VmpFNmRYTmxjbTVoYldVOmNHRnpjM2R2Y21RPTo=' \\
  -H 'Content-Type: application/x-www-form-urlencoded' \\
  -d 'grant_type=client_credentials'`,
  ),
  token(
    'FedEx',
    `curl -X POST "https://HOST/oauth/token" -H "Content-Type: application/x-www-form-urlencoded" -d 'grant_type=client_credentials&client_id=l7xx&client_secret=5d1a'`,
  ),
  token(
    'UPS',
    `curl -i -X POST \\
  -u client-1:sesame-open \\
  https://HOST/security/v1/oauth/token \\
  -H 'Content-Type: application/x-www-form-urlencoded' \\
  -H 'x-merchant-id: A1B2C3' \\
  -d grant_type=client_credentials`,
  ),
  token(
    'Spotify',
    `curl -X POST "https://HOST/api/token" \\
     -H "Content-Type: application/x-www-form-urlencoded" \\
     -d "grant_type=client_credentials&client_id=client-1&client_secret=sesame-open"`,
  ),
  token(
    'Zoom',
    `curl -X POST 'https://HOST/oauth/token?grant_type=account_credentials&account_id=abc' -H 'Authorization: Basic ${BASIC}'`,
  ),
  token(
    'Xero',
    `curl -X POST https://HOST/connect/token \\
  -H "authorization: Basic ${BASIC}" \\
  -H "Content-Type: application/x-www-form-urlencoded" \\
  -d "grant_type=client_credentials&scope=accounting.transactions accounting.settings"`,
  ),
  token('Wise', `curl 'https://HOST/oauth/token' -u 'client-1:sesame-open' -d 'grant_type=client_credentials'`),
  token(
    'eBay',
    `curl -X POST 'https://HOST/identity/v1/oauth2/token' \\
  -H 'Content-Type: application/x-www-form-urlencoded' \\
  -H 'Authorization: Basic ${BASIC}' \\
  -d 'grant_type=client_credentials&scope=https%3A%2F%2Fapi.example%2Foauth%2Fapi_scope'`,
  ),
  token(
    'Reddit',
    `curl -X POST -d 'grant_type=password&username=reddit_bot&password=snoo' --user 'client-1:sesame-open' -A 'ChangeMeClient/0.1 by me' https://HOST/api/v1/access_token`,
  ),
  token(
    'DHL',
    `curl --location 'https://HOST/parcel/de/account/auth/ropc/v1/token'
--header 'Content-Type: application/x-www-form-urlencoded'
--data-urlencode 'grant_type=password'
--data-urlencode 'username=user-valid'
--data-urlencode 'password=SandboxPasswort2023!'
--data-urlencode 'client_id=client-1'
--data-urlencode 'client_secret=sesame-open'`,
  ),
  token(
    'Walmart',
    `curl -X POST https://HOST/v3/token -H 'Authorization: Basic ${BASIC}' -H 'WM_SVC.NAME: Marketplace' -H 'WM_QOS.CORRELATION_ID: b3261d2d' -d 'grant_type=client_credentials'`,
  ),
  token(
    'MuleSoft Anypoint',
    `curl -X POST https://HOST/accounts/api/v2/oauth2/token -H "Content-Type: application/json" -d '{
  "client_id": "client-1",
  "client_secret": "sesame-open",
  "grant_type": "client_credentials"
}'`,
  ),
  token(
    'an API behind a gateway, credentials in header fields',
    `curl -X POST 'https://HOST/v1/token' -H 'client_id: client-1' -H 'client_secret: sesame-open'`,
  ),
  token(
    'a page with a placeholder in place of the token',
    `curl -X POST 'https://HOST/oauth2/token' -H 'Authorization: Bearer <token>' -d 'grant_type=client_credentials&client_id=client-1&client_secret=sesame-open'`,
  ),
  call(
    'Twilio',
    `curl -X POST https://HOST/2010-04-01/Accounts/AC123/Messages.json \\
--data-urlencode "Body=Hi" \\
--data-urlencode "From=+14155552344" \\
--data-urlencode "To=+15558675310" \\
-u AC123:sesame-open`,
  ),
  call('Stripe', `curl https://HOST/v1/charges -u sk_test_4eC39HqLyjWDarjtT1zdp7dc: -d amount=2000 -d currency=usd`),
  call(
    'Mailgun',
    `curl -s --user 'api:key-1' https://HOST/v3/mg.example.com/messages -F from='Me <me@mg.example.com>' -F subject='Hello' -F text='Hi!'`,
  ),
  call(
    'Zendesk',
    `curl https://HOST/api/v2/tickets.json -d '{"ticket": {"subject": "My printer is on fire!"}}' -H "Content-Type: application/json" -v -u me@example.com/token:sesame-open -X POST`,
  ),
  call(
    'SendGrid',
    `curl --request POST --url https://HOST/v3/mail/send --header 'Authorization: Bearer SG.sesame-open' --header 'Content-Type: application/json' --data '{"subject":"Hi"}'`,
  ),
  call(
    'GitHub',
    `curl -L -H "Accept: application/vnd.github+json" -H "Authorization: Bearer ghp_sesame" -H "X-GitHub-Api-Version: 2022-11-28" https://HOST/user/repos?page=2`,
  ),
  call(
    'Adyen',
    `curl https://HOST/v71/payments -H 'x-API-key: AQEyhmfxK' -H 'content-type: application/json' -d '{"amount":{"value":1000}}'`,
  ),
  call('Shippo', `curl https://HOST/shipments/ -H "Authorization: ShippoToken shippo_test_1" -d address_from=d799c267`),
  call(
    'Marqeta',
    `curl -i -X GET 'https://HOST/v3/cardproducts?count=1' --user app-1:admin-1 -H 'accept: application/json'`,
  ),
  call(
    'Square',
    `curl https://HOST/v2/payments -H 'Square-Version: 2024-01-18' -H 'Authorization: Bearer EAAA-sesame' -H 'Content-Type: application/json' -d '{"source_id": "cnon:ok"}'`,
  ),
];

/** What init refuses, or cannot know, and what the one sentence names. */
export const REFUSED_COMMANDS: readonly (readonly [partner: string, named: RegExp, text: string])[] = [
  [
    'Marketo',
    /token by GET/,
    `curl 'https://HOST/identity/oauth/token?grant_type=client_credentials&client_id=a&client_secret=b'`,
  ],
  ['Safaricom', /token by GET/, `curl -u a:b 'https://HOST/oauth/v1/generate?grant_type=client_credentials'`],
  [
    'SurePayroll',
    /multipart/,
    `curl -F grant_type=client_credentials -F client_id=a -F client_secret=b https://HOST/oauth/token`,
  ],
  [
    'Plaid',
    /does not show/,
    `curl -X POST https://HOST/item/public_token/exchange -H 'Content-Type: application/json' -d '{"client_id":"a","secret":"b","public_token":"c"}'`,
  ],
  [
    'OpenStack',
    /does not show.*another value than a text/,
    `curl https://HOST/v3/auth/tokens -H "Content-Type: application/json" -d '{"auth":{"identity":{"methods":["password"]}}}'`,
  ],
  [
    'a number in JSON',
    /another value than a text/,
    `curl https://HOST/token --json '{"grant_type":"client_credentials","client_id":"a","client_secret":"b","expires":3600}'`,
  ],
  [
    'an array in JSON',
    /another value than a text/,
    `curl https://HOST/token --json '{"grant_type":"client_credentials","scopes":[["a"]]}'`,
  ],
  ['a file', /in a file/, `curl -u a:b https://HOST/oauth/token -d @body.txt`],
  ['the body of -G', /token by GET/, `curl -G -u a:b https://HOST/oauth/token -d grant_type=client_credentials`],
  [
    'a substitution around it',
    /\$\( \).*backslash/,
    `TOKEN=$(curl -u a:b -d grant_type=client_credentials https://HOST/oauth/token | jq -r .access_token)`,
  ],
  [
    'a substitution in it',
    /\$\( \)/,
    `curl -H "Authorization: Basic $(echo -n a:b | base64)" -d grant_type=client_credentials https://HOST/oauth/token`,
  ],
  [
    'cmd.exe',
    /cmd\.exe/,
    `curl ^"https://HOST/oauth/token^" ^\n  -H ^"authorization: Basic ${BASIC}^" ^\n  --data-raw ^"grant_type=client_credentials^"`,
  ],
  [
    'a line that lost its backslash',
    /backslash/,
    `curl -X POST https://HOST/oauth/token -d grant_type=client_credentials -u\na:b`,
  ],
  ['an API path with auth', /does not show/, `curl https://HOST/auth/users -u a:b --json '{"name":"x"}'`],
  ['a revocation', /does not show/, `curl https://HOST/oauth/revoke -u a:b -d token=abc`],
  [
    'an & outside of quotes',
    /outside of quotes/,
    `curl -X POST https://HOST/oauth/token -d grant_type=client_credentials&client_id=a&client_secret=b`,
  ],
];
