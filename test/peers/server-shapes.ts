/**
 * Authorization servers that cannot be run here, as their public documentation describes them: the settings for each, the token request that
 * it accepts (RFC 6749 §4.4), and the form of its tokens and refusals. Data only: shape-server.ts responds with it, docs/authorization-servers.md
 * shows the settings. Facts of the documentation; the texts of the refusals are shortened.
 */

export type SecretMethod = 'client_secret_basic' | 'client_secret_post';

export type OtherMethod = 'private_key_jwt' | 'tls_client_auth' | 'client_assertion';

/** What is wrong with a token request, or with the server. */
export type RefusalCause =
  | 'wrong secret'
  | 'unknown client'
  | 'wrong grant'
  | 'rate limited'
  | 'outage'
  | 'page with 200'
  | 'page with 403'
  | 'page with 502';

/** In a body, `CLIENT_ID` stands for the client id of the request. */
export interface Refusal {
  readonly cause: RefusalCause;
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** An object is sent as JSON. */
  readonly body: object | string;
  /** The code of the sidecar's local reply. */
  readonly code: 'TOKEN_REJECTED' | 'TOKEN_UNAVAILABLE';
  /** Parts of the reply's detail: the server's own words, or the status where it says nothing about the client. */
  readonly shows: readonly string[];
}

export interface ServerShape {
  readonly name: string;
  /** The documentation that the entry follows. */
  readonly sources: readonly string[];
  /** The section `auth` of a configuration file in YAML, without the client's id and secret. */
  readonly auth: string;
  /** Remarks for users. */
  readonly remarks: readonly string[];
  readonly request: {
    /** Path and query. */
    readonly target: string;
    /** Those that the product documents; the first is that of `auth`. */
    readonly methods: readonly SecretMethod[];
    /** Further ones that it documents and the stub does not have. */
    readonly otherMethods: readonly OtherMethod[];
    /** Whether the Basic value is form-decoded (RFC 6749 §2.3.1). */
    readonly decodesBasic: boolean;
    /** Form fields beside `grant_type` and those of the client. */
    readonly form: Readonly<Record<string, string>>;
    /** Whether a firewall in front of it refuses requests without `User-Agent`. */
    readonly needsUserAgent: boolean;
  };
  readonly token: {
    /** An access token; the random part is drawn for each. */
    readonly value: (random: string) => string;
    readonly headers: Readonly<Record<string, string>>;
    /** All members but `access_token`. */
    readonly members: Readonly<Record<string, unknown>>;
  };
  readonly refusals: readonly Refusal[];
}

const UUID = '0f3c9a52-7d1e-4b6a-9c58-2e41d7b80a36';
const NO_STORE = { 'cache-control': 'no-store', pragma: 'no-cache' };
const jwt = (random: string): string => `eyJhbGciOiJSUzI1NiIsInR5cCI6IkpXVCJ9.eyJqdGkiOiJ${random}.c2ln_-${random}`;

function rejected(cause: RefusalCause, status: number, body: object, shows: readonly string[]): Refusal {
  return { cause, status, body, code: 'TOKEN_REJECTED', shows };
}

function unavailable(cause: RefusalCause, status: number, body: object | string, rest: Partial<Refusal> = {}): Refusal {
  return { cause, status, body, code: 'TOKEN_UNAVAILABLE', shows: [String(status)], ...rest };
}

/** Entra's errors of both versions have the same members. */
function entraError(error: string, number: number, text: string): object {
  const trace = { trace_id: UUID, correlation_id: UUID.replace('0f3c', '77aa') };
  const lines = [`AADSTS${String(number)}: ${text}`, `Trace ID: ${trace.trace_id}`];
  return {
    error,
    error_description: [...lines, `Correlation ID: ${trace.correlation_id}`, 'Timestamp: 2026-01-09 02:02:12Z'].join(
      '\r\n',
    ),
    error_codes: [number],
    timestamp: '2026-01-09 02:02:12Z',
    ...trace,
    error_uri: `https://login.microsoftonline.com/error?code=${String(number)}`,
  };
}

const ENTRA_REFUSALS: readonly Refusal[] = [
  rejected(
    'wrong secret',
    401,
    entraError('invalid_client', 7000215, "Invalid client secret provided for app 'CLIENT_ID'."),
    ['invalid_client', 'AADSTS7000215', UUID],
  ),
  rejected(
    'unknown client',
    400,
    entraError(
      'unauthorized_client',
      700016,
      "Application with identifier 'CLIENT_ID' was not found in the directory.",
    ),
    ['unauthorized_client', 'AADSTS700016', 'was not found in the directory'],
  ),
  unavailable('outage', 503, entraError('temporarily_unavailable', 90033, 'A transient error has occurred.')),
  unavailable('rate limited', 429, entraError('invalid_request', 90055, 'Too many requests.'), {
    headers: { 'retry-after': '7' },
  }),
];

const okta = (errorCode: string, errorSummary: string): object => ({
  errorCode,
  errorSummary,
  errorLink: errorCode,
  errorId: 'oaeq3NxUzVqQ5Gv8yTRLXgk0g',
  errorCauses: [],
});

const PAGE = '<html><head><title>Request blocked</title></head><body><h1>Request blocked</h1></body></html>';

/** Of proxies and firewalls in front of any of them. */
const PAGES: readonly Refusal[] = [
  unavailable('page with 200', 200, PAGE),
  unavailable('page with 403', 403, PAGE),
  unavailable('page with 502', 502, PAGE),
];

const PRODUCTS: readonly ServerShape[] = [
  {
    name: 'Auth0',
    sources: [
      'https://auth0.com/docs/get-started/authentication-and-authorization-flow/client-credentials-flow/call-your-api-using-the-client-credentials-flow',
      'https://auth0.com/docs/troubleshoot/customer-support/operational-policies/rate-limit-policy',
    ],
    auth: `url: https://TENANT.eu.auth0.com
method: client_secret_post
audience: https://api.partner.example/`,
    remarks: ['Set the method that the Auth0 dashboard shows for the application.'],
    request: {
      target: '/oauth/token',
      methods: ['client_secret_post', 'client_secret_basic'],
      otherMethods: ['private_key_jwt', 'tls_client_auth'],
      decodesBasic: false,
      form: { audience: 'https://api.partner.example/' },
      needsUserAgent: false,
    },
    token: { value: jwt, headers: NO_STORE, members: { token_type: 'Bearer', expires_in: 86_400 } },
    refusals: [
      rejected('wrong secret', 401, { error: 'access_denied', error_description: 'Unauthorized' }, [
        'access_denied',
        'Unauthorized',
      ]),
      rejected('unknown client', 401, { error: 'access_denied', error_description: 'Unauthorized' }, ['access_denied']),
      rejected(
        'wrong grant',
        403,
        { error: 'access_denied', error_description: 'Client is not authorized to access "https://other.example/".' },
        ['access_denied', 'Client is not authorized to access'],
      ),
      unavailable(
        'rate limited',
        429,
        { error: 'too_many_requests', error_description: 'Global limit has been reached' },
        { headers: { 'x-ratelimit-limit': '10', 'x-ratelimit-remaining': '0' } },
      ),
      unavailable('outage', 503, 'Service Unavailable'),
    ],
  },
  {
    name: 'Amazon Cognito',
    sources: [
      'https://docs.aws.amazon.com/cognito/latest/developerguide/token-endpoint.html',
      'https://docs.aws.amazon.com/waf/latest/developerguide/aws-managed-rule-groups-baseline.html',
    ],
    auth: `url: https://DOMAIN.auth.eu-central-1.amazoncognito.com
tokenPath: /oauth2/token
method: client_secret_basic
scope: https://api.partner.example/policies.write`,
    remarks: ['A scope is the identifier of the resource server, a slash and a name.'],
    request: {
      target: '/oauth2/token',
      methods: ['client_secret_basic', 'client_secret_post'],
      otherMethods: [],
      decodesBasic: false,
      form: { scope: 'https://api.partner.example/policies.write' },
      needsUserAgent: true,
    },
    token: { value: jwt, headers: NO_STORE, members: { expires_in: 3600, token_type: 'Bearer' } },
    refusals: [
      rejected('wrong secret', 400, { error: 'invalid_client' }, ['invalid_client']),
      rejected('unknown client', 400, { error: 'invalid_client' }, ['invalid_client']),
      rejected('wrong grant', 400, { error: 'invalid_grant' }, ['invalid_grant']),
      unavailable('rate limited', 429, { message: 'Too many requests' }),
      unavailable('outage', 500, { message: 'Internal server error' }),
    ],
  },
  {
    name: 'Microsoft Entra v1',
    sources: [
      'https://learn.microsoft.com/en-us/previous-versions/azure/active-directory/azuread-dev/v1-oauth2-client-creds-grant-flow',
      'https://learn.microsoft.com/en-us/entra/identity-platform/reference-error-codes',
    ],
    auth: `url: https://login.microsoftonline.com
tokenPath: /TENANT/oauth2/token
method: client_secret_post
resource: https://api.partner.example/app`,
    remarks: [],
    request: {
      target: '/TENANT/oauth2/token',
      methods: ['client_secret_post'],
      otherMethods: ['private_key_jwt', 'client_assertion'],
      decodesBasic: false,
      form: { resource: 'https://api.partner.example/app' },
      needsUserAgent: false,
    },
    token: {
      value: jwt,
      headers: { ...NO_STORE, 'content-type': 'application/json; charset=utf-8', 'x-ms-request-id': UUID },
      members: {
        token_type: 'Bearer',
        expires_in: '3599',
        ext_expires_in: '3599',
        expires_on: '1899999999',
        not_before: '1767225600',
        resource: 'https://api.partner.example/app',
      },
    },
    refusals: [
      ...ENTRA_REFUSALS,
      rejected(
        'wrong grant',
        400,
        entraError('invalid_resource', 500011, 'The resource principal was not found in the tenant.'),
        ['invalid_resource', 'AADSTS500011', UUID],
      ),
    ],
  },
  {
    name: 'Microsoft Entra v2',
    sources: [
      'https://learn.microsoft.com/en-us/entra/identity-platform/v2-oauth2-client-creds-grant-flow',
      'https://learn.microsoft.com/en-us/entra/identity-platform/reference-error-codes',
    ],
    auth: `url: https://login.microsoftonline.com
tokenPath: /TENANT/oauth2/v2.0/token
method: client_secret_post
scope: api://PARTNER-APP-ID/.default`,
    remarks: ['The scope is always the application id URI of the API, followed by `/.default`.'],
    request: {
      target: '/TENANT/oauth2/v2.0/token',
      methods: ['client_secret_post'],
      otherMethods: ['private_key_jwt', 'client_assertion'],
      decodesBasic: false,
      form: { scope: 'api://PARTNER-APP-ID/.default' },
      needsUserAgent: false,
    },
    token: {
      value: jwt,
      headers: { ...NO_STORE, 'content-type': 'application/json; charset=utf-8', 'x-ms-request-id': UUID },
      members: { token_type: 'Bearer', expires_in: 3599, ext_expires_in: 3599 },
    },
    refusals: [
      ...ENTRA_REFUSALS,
      rejected('wrong grant', 400, entraError('invalid_scope', 70011, "The value of 'scope' is not valid."), [
        'invalid_scope',
        'AADSTS70011',
        UUID,
      ]),
    ],
  },
  {
    name: 'Okta',
    sources: [
      'https://developer.okta.com/docs/guides/implement-grant-type/clientcreds/main/',
      'https://support.okta.com/help/s/article/invalid-client-error-returned-during-client-authentication-failure',
      'https://developer.okta.com/docs/reference/error-codes/',
    ],
    auth: `url: https://DOMAIN.okta.com
tokenPath: /oauth2/default/v1/token
method: client_secret_basic
scope: policies.write`,
    remarks: ['`default` is the name of the custom authorization server, in which the scope must be defined.'],
    request: {
      target: '/oauth2/default/v1/token',
      methods: ['client_secret_basic', 'client_secret_post'],
      otherMethods: ['private_key_jwt'],
      decodesBasic: false,
      form: { scope: 'policies.write' },
      needsUserAgent: false,
    },
    token: {
      value: jwt,
      headers: { ...NO_STORE, 'x-okta-request-id': UUID },
      members: { token_type: 'Bearer', expires_in: 3600, scope: 'policies.write' },
    },
    refusals: [
      rejected(
        'wrong secret',
        401,
        {
          error: 'invalid_client',
          error_description: 'The client secret supplied for a confidential client is invalid.',
        },
        ['invalid_client', 'for a confidential client is invalid'],
      ),
      rejected('unknown client', 401, okta('invalid_client', "Invalid value for 'client_id' parameter."), [
        'invalid_client',
        'Invalid value for',
      ]),
      rejected(
        'wrong grant',
        400,
        {
          error: 'invalid_scope',
          error_description: 'One or more scopes are not configured for the authorization server.',
        },
        ['invalid_scope', 'scopes are not configured'],
      ),
      unavailable('rate limited', 429, okta('E0000047', 'API call exceeded rate limit due to too many requests.'), {
        headers: { 'x-rate-limit-limit': '300', 'x-rate-limit-remaining': '0', 'x-rate-limit-reset': '1899999999' },
      }),
      unavailable('outage', 500, okta('E0000009', 'Internal Server Error')),
    ],
  },
  {
    name: 'Keycloak',
    sources: [
      'https://www.keycloak.org/docs/latest/server_admin/#_client_credentials_grant',
      'https://www.keycloak.org/securing-apps/oidc-layers',
    ],
    auth: `url: https://keycloak.partner.example
tokenPath: /realms/REALM/protocol/openid-connect/token
method: client_secret_basic
basicEncoding: form
scope: policies`,
    remarks: ['Keycloak form-decodes id and secret, so `basicEncoding: form` is right for every secret.'],
    request: {
      target: '/realms/REALM/protocol/openid-connect/token',
      methods: ['client_secret_basic', 'client_secret_post'],
      otherMethods: ['private_key_jwt', 'tls_client_auth', 'client_assertion'],
      decodesBasic: true,
      form: { scope: 'policies' },
      needsUserAgent: false,
    },
    token: {
      value: jwt,
      headers: NO_STORE,
      members: {
        expires_in: 300,
        refresh_expires_in: 0,
        token_type: 'Bearer',
        'not-before-policy': 0,
        scope: 'email profile policies',
      },
    },
    refusals: [
      rejected(
        'wrong secret',
        401,
        { error: 'unauthorized_client', error_description: 'Invalid client or Invalid client credentials' },
        ['unauthorized_client', 'Invalid client or Invalid client credentials'],
      ),
      rejected(
        'unknown client',
        401,
        { error: 'invalid_client', error_description: 'Invalid client or Invalid client credentials' },
        ['invalid_client', 'Invalid client or Invalid client credentials'],
      ),
      rejected('wrong grant', 400, { error: 'invalid_scope', error_description: 'Invalid scopes: other' }, [
        'invalid_scope',
        'Invalid scopes: other',
      ]),
      unavailable('rate limited', 429, PAGE),
      unavailable('outage', 500, {
        error: 'unknown_error',
        error_description: 'For more on this error consult the log.',
      }),
    ],
  },
  {
    name: 'Salesforce',
    sources: [
      'https://help.salesforce.com/s/articleView?id=xcloud.remoteaccess_oauth_client_credentials_flow.htm',
      'https://help.salesforce.com/s/articleView?id=xcloud.remoteaccess_oauth_flow_errors.htm',
    ],
    auth: `url: https://MYDOMAIN.my.salesforce.com
tokenPath: /services/oauth2/token
method: client_secret_post
scope: api
defaultLifetimeMs: 900000`,
    remarks: [
      'The response has no `expires_in`: set `defaultLifetimeMs` to less than the time-out of the session policy.',
    ],
    request: {
      target: '/services/oauth2/token',
      methods: ['client_secret_post', 'client_secret_basic'],
      otherMethods: [],
      decodesBasic: false,
      form: { scope: 'api' },
      needsUserAgent: false,
    },
    token: {
      value: (random) => `00D5e000001N20Q!AQ4AQ.${random}_.Kz`,
      headers: { ...NO_STORE, 'content-type': 'application/json;charset=UTF-8' },
      members: {
        signature: 'c2lnbmF0dXJlIG9mIHRoZSBpZGVudGl0eQ==',
        scope: 'api',
        instance_url: 'https://mydomain.my.salesforce.com',
        id: 'https://login.salesforce.com/id/00D5e000001N20QEAS/0055e000001N20QAAS',
        token_type: 'Bearer',
        issued_at: '1767225600000',
      },
    },
    refusals: [
      rejected('wrong secret', 400, { error: 'invalid_client', error_description: 'invalid client credentials' }, [
        'invalid_client',
        'invalid client credentials',
      ]),
      rejected('unknown client', 400, { error: 'invalid_client_id', error_description: 'client identifier invalid' }, [
        'invalid_client_id',
        'client identifier invalid',
      ]),
      unavailable('outage', 503, 'Server Unavailable'),
    ],
  },
  {
    name: 'Apigee',
    sources: [
      'https://cloud.google.com/apigee/docs/api-platform/security/oauth/oauth-20-client-credentials-grant-type',
      'https://cloud.google.com/apigee/docs/api-platform/reference/policies/oauthv2-policy',
      'https://cloud.google.com/apigee/docs/api-platform/security/oauth/oauth-http-status-code-reference',
    ],
    auth: `url: https://API-HOST.partner.example
tokenPath: /oauth/client_credential/accesstoken?grant_type=client_credentials
method: client_secret_basic
scope: policies.write`,
    remarks: [
      'The path is that of the API proxy; many proxies read the grant from the query.',
      'Its refusals have no OAuth `error`: a 401 becomes `TOKEN_REJECTED`, any other refusal `TOKEN_UNAVAILABLE`.',
    ],
    request: {
      target: '/oauth/client_credential/accesstoken?grant_type=client_credentials',
      methods: ['client_secret_basic', 'client_secret_post'],
      otherMethods: [],
      decodesBasic: false,
      form: { scope: 'policies.write' },
      needsUserAgent: false,
    },
    token: {
      value: (random) => random.padEnd(28, 'Zq7').slice(0, 28),
      headers: {},
      members: {
        refresh_token_expires_in: '0',
        api_product_list: '[policies-product]',
        api_product_list_json: ['policies-product'],
        organization_name: 'partner',
        'developer.email': 'developer@partner.example',
        token_type: 'BearerToken',
        issued_at: '1767225600000',
        client_id: 'CLIENT_ID',
        application_name: UUID,
        scope: '',
        expires_in: '3599',
        refresh_count: '0',
        status: 'approved',
      },
    },
    refusals: [
      // `ErrorCode` and `fault` are neither an OAuth error nor `errorCode`: the status decides.
      rejected('wrong secret', 401, { ErrorCode: 'invalid_client', Error: 'Client credentials are invalid' }, [
        'Client credentials are invalid',
      ]),
      rejected(
        'unknown client',
        401,
        {
          fault: {
            faultstring: 'Invalid client identifier',
            detail: { errorcode: 'oauth.v2.InvalidClientIdentifier' },
          },
        },
        ['Invalid client identifier'],
      ),
      unavailable('wrong grant', 400, { ErrorCode: 'invalid_scope', Error: 'The scope is not valid' }),
      unavailable('rate limited', 429, {
        fault: {
          faultstring: 'Rate limit quota violation',
          detail: { errorcode: 'policies.ratelimit.QuotaViolation' },
        },
      }),
      unavailable('outage', 503, {
        fault: {
          faultstring: 'The Service is temporarily unavailable',
          detail: { errorcode: 'messaging.adaptors.http.flow.ServiceUnavailable' },
        },
      }),
    ],
  },
  {
    name: 'PayPal',
    sources: [
      'https://developer.paypal.com/api/rest/authentication/',
      'https://developer.paypal.com/docs/api/get-an-access-token-postman',
    ],
    auth: `url: https://api-m.paypal.com
tokenPath: /v1/oauth2/token
method: client_secret_basic
scope: https://uri.paypal.com/services/invoicing`,
    remarks: [
      'PayPal needs neither scope nor audience. A scope restricts the token to a part of the rights of the application.',
    ],
    request: {
      target: '/v1/oauth2/token',
      methods: ['client_secret_basic'],
      otherMethods: [],
      decodesBasic: false,
      form: { scope: 'https://uri.paypal.com/services/invoicing' },
      needsUserAgent: false,
    },
    token: {
      value: (random) => `A21AA${random}-_${random}`,
      headers: { 'paypal-debug-id': 'f52d8a2c1e7b' },
      members: {
        scope: 'https://uri.paypal.com/services/invoicing openid',
        token_type: 'Bearer',
        app_id: 'APP-80W284485P519543T',
        expires_in: 31_668,
        nonce: '2026-01-09T02:02:12Zc2ln-nonce_0',
      },
    },
    refusals: [
      rejected('wrong secret', 401, { error: 'invalid_client', error_description: 'Client Authentication failed' }, [
        'invalid_client',
        'Client Authentication failed',
      ]),
      rejected('unknown client', 401, { error: 'invalid_client', error_description: 'Client Authentication failed' }, [
        'invalid_client',
      ]),
      rejected('wrong grant', 400, { error: 'invalid_scope', error_description: 'Requested scope is not valid.' }, [
        'invalid_scope',
        'Requested scope is not valid',
      ]),
      unavailable('rate limited', 429, {
        name: 'RATE_LIMIT_REACHED',
        message: 'Too many requests. Blocked due to rate limiting.',
        debug_id: 'f52d8a2c1e7b',
      }),
      unavailable('outage', 500, { name: 'INTERNAL_SERVER_ERROR', debug_id: 'f52d8a2c1e7b' }),
    ],
  },
];

export const SERVER_SHAPES: readonly ServerShape[] = PRODUCTS.map((shape) => ({
  ...shape,
  refusals: [...shape.refusals, ...PAGES],
}));
