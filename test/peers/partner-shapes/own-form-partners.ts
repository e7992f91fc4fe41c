/**
 * Partners with a token request of their own form: 51 of the 65 entries with `auth_mode: TWO_STEP`, and one with `BILL`, of the public catalogue NangoHQ/nango,
 * packages/providers/providers.yaml, in the revision 0004941efdc4; the others are in unserved-partners.ts. Facts only. Where the catalogue renews with a refresh token, the
 * first request is taken: the sidecar requests a new token instead.
 */
import { partner } from './partner-shape.ts';
import type { Differences, PartnerShape } from './partner-shape.ts';

type Row = [
  key: string,
  name: string,
  target: string,
  parameters: Readonly<Record<string, string>>,
  given?: Differences,
];

/** JSON with fields of the partner's own. */
function login(...[key, name, target, parameters, given]: Row): PartnerShape {
  return partner(key, name, target, { format: 'json', client: 'none', grant: '', expires: '', parameters, ...given });
}

/** A form; `grant_type` is among the parameters, if there is one. */
function form(...[key, name, target, parameters, given]: Row): PartnerShape {
  return partner(key, name, target, { client: 'none', grant: '', parameters, ...given });
}

/** A JWT that the client signs, in place of a secret. */
function signed(...[key, name, target, parameters, given]: Row): PartnerShape {
  return partner(key, name, target, { client: 'private_key_jwt', parameters, ...given });
}

const PASSWORD = { username: '<username>', password: '<password>' };
const EMAIL = { email: '<e-mail>', password: '<password>' };
const BASIC: Differences = { client: 'client_secret_basic' };
const POST: Differences = { client: 'client_secret_post' };
const JWT_BEARER = { grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer' };
const RAW: Differences = { prefix: '' };

export const OWN_FORM_PARTNERS: readonly PartnerShape[] = [
  form(
    '3cx',
    '3CX',
    '/connect/token',
    { grant_type: 'client_credentials' },
    { ...POST, expires: '', lifetimeMs: 3_600_000 },
  ),
  login('agencyzoom', 'AgencyZoom', '/v1/api/auth/login', PASSWORD, { token: 'jwt' }),
  form(
    'altrata',
    'Altrata',
    '/oauth2/token?grant_type=client_credentials',
    {},
    {
      ...BASIC,
      fields: { 'x-api-key': '<api key>' },
      callFields: { 'x-api-key': '<api key>' },
    },
  ),
  signed(
    'apple-business-manager',
    'Apple Business Manager',
    '/auth/oauth2/v2/token',
    { scope: 'business.api' },
    {
      assertion: { algorithm: 'ES256', hasKeyId: true },
    },
  ),
  login('aspire', 'Aspire', '/Authorization', { ClientId: '<client id>', Secret: '<secret>' }, { token: 'Token' }),
  login(
    'bill-sandbox',
    'Bill (sandbox)',
    '/connect/v3/login',
    { username: '<username>', password: '<password>', organizationId: '<organization>', devKey: '<developer key>' },
    { token: 'sessionId', header: 'sessionId', callFields: { devkey: '<developer key>' }, lifetimeMs: 2_100_000 },
  ),
  login('breezy-hr', 'Breezy HR', '/v3/signin', EMAIL, RAW),
  form('datto-rmm-password-grant', 'Datto RMM', '/auth/oauth/token', { grant_type: 'password', ...PASSWORD }, BASIC),
  form('dayforce', 'Dayforce', '/connect/token', {
    grant_type: 'password',
    companyId: '<company id>',
    client_id: 'Dayforce.HCMAnywhere.Client',
    ...PASSWORD,
  }),
  form(
    'docuware',
    'DocuWare',
    '/connect/token',
    {
      grant_type: 'password',
      scope: 'docuware.platform',
      client_id: 'docuware.platform.net.client',
      ...PASSWORD,
    },
    {
      remark:
        'the token endpoint is in the metadata of the identity service that `/DocuWare/Platform/Home/IdentityServiceInfo` names',
    },
  ),
  form(
    'drupal',
    'Drupal',
    '/rest_api/access_token',
    { grant_type: 'client_credentials', username: '<username>' },
    POST,
  ),
  login('embat', 'Embat', '/authentication/token', EMAIL, { token: 'idToken' }),
  signed(
    'epic',
    'Epic (FHIR)',
    '/oauth2/token',
    { scope: '<scope>' },
    {
      assertion: { algorithm: 'ES256', hasKeyId: true },
      callFields: { accept: 'application/fhir+json' },
    },
  ),
  form('google-service-account', 'Google service account', '/token', JWT_BEARER, {
    assertion: { claims: { scope: '<scope>', sub: '<user>' } },
  }),
  form('heap', 'Heap', '/api/public/v0/auth_token', {}, BASIC),
  form('infor-cc', 'Infor', '/<tenant>/as/token.oauth2', { grant_type: 'password', ...PASSWORD }, POST),
  form(
    'jamf-basic',
    'Jamf Pro (user)',
    '/api/v1/auth/token',
    {},
    { ...BASIC, token: 'token', expires: 'expires', unit: 'date' },
  ),
  form('looker', 'Looker', '/api/4.0/login', {}, POST),
  signed(
    'microsoft-oauth2-cc-cert',
    'Microsoft Graph (certificate)',
    '/<tenant>/oauth2/v2.0/token',
    { scope: '<scope>' },
    {
      assertion: { algorithm: 'PS256', hasThumbprint: true },
    },
  ),
  login(
    'mip-cloud',
    'MIP Cloud',
    '/api/v1/sso/mipadv/login',
    { ...PASSWORD, org: '<database>' },
    {
      token: 'AccessToken',
      header: 'Authorization-Token',
    },
  ),
  login(
    'mip-on-premise',
    'MIP On Premise',
    '/api/security/login',
    { login: '<username>', password: '<password>', org: '<database>' },
    {
      token: 'AccessToken',
      header: 'Authorization-Token',
    },
  ),
  form(
    'modmed',
    'ModMed',
    '/firm/<firm>/ema/ws/oauth2/grant',
    { grant_type: 'password', ...PASSWORD },
    {
      fields: { 'x-api-key': '<api key>' },
      expires: '',
      callFields: { accept: 'application/fhir+json', 'x-api-key': '<api key>' },
    },
  ),
  form(
    'nable-ncentral',
    'N-able N-central',
    '/api/auth/authenticate',
    {},
    {
      fields: { authorization: 'Bearer <user API token>' },
      token: 'tokens.access.token',
      expires: 'tokens.access.expirySeconds',
    },
  ),
  login(
    'netsapiens',
    'NetSapiens',
    '/ns-api/v2/tokens',
    { grant_type: 'password', ...PASSWORD },
    { ...POST, expires: 'expires_in' },
  ),
  signed(
    'netsuite-client-credentials',
    'NetSuite',
    '/services/rest/auth/oauth2/v1/token',
    {},
    { assertion: { hasKeyId: true } },
  ),
  form(
    'odoo-cc',
    'Odoo',
    '/restapi/1.0/common/oauth2/access_token',
    { grant_type: 'client_credentials' },
    {
      ...POST,
      expires: 'access_token_validity',
    },
  ),
  login(
    'orange-logic',
    'Orange Logic',
    '/webapi/security/clientcredentialsauthentication/authenticate_46H_v1',
    {},
    {
      ...POST,
      expires: 'expires_in',
    },
  ),
  login(
    'passportal',
    'Passportal',
    '/api/v2/auth/client_token',
    { scope: 'docs_api', content: '<content>' },
    {
      fields: { 'x-key': '<access key>', 'x-hash': '<hash>' },
      expires: 'expiry_time',
      unit: 'date',
      header: 'X-Access-Token',
    },
  ),
  login(
    'perimeter81',
    'Perimeter81',
    '/api/v1/auth/authorize',
    { apiKey: '<api key>', grantType: 'api_key' },
    {
      token: 'data.accessToken',
      expires: 'data.accessTokenExpire',
      unit: 'date',
    },
  ),
  form(
    'pverify',
    'pVerify',
    '/Token',
    {
      grant_type: 'client_credentials',
      Client_Id: '<client id>',
      Client_Secret: '<client secret>',
    },
    { fields: { 'client-api-id': '<client id>' }, callFields: { 'client-api-id': '<client id>' } },
  ),
  login('researchdesk', 'ResearchDesk', '/tokens', EMAIL, { token: 'token', expires: 'expires', unit: 'date' }),
  login(
    'sage-300-cre',
    'Sage 300 Construction and Real Estate',
    '/api/common/user/authenticate',
    { userid: '<username>', password: '<password>' },
    {
      fields: { 'x-dppkey': '<license key>' },
      token: 'Data',
      header: 'X-Credentials',
      callFields: { 'x-dppkey': '<license key>', 'x-databasename': '<database>' },
    },
  ),
  form(
    'sage-intacct-cc',
    'Sage Intacct',
    '/ia/api/v1/oauth2/token',
    { grant_type: 'client_credentials', username: '<username>' },
    POST,
  ),
  form('salesforce-jwt', 'Salesforce (JWT)', '/services/oauth2/token', JWT_BEARER, {
    expires: '',
    assertion: { audience: 'https://login.salesforce.com', claims: { sub: '<username>' } },
  }),
  login(
    'sap-business-one',
    'SAP Business One',
    '/Login',
    { CompanyDB: '<company>', DBInstance: '<instance>', UserName: '<username>', Password: '<password>' },
    {
      token: 'SessionId',
      lifetimeMs: 1_700_000,
      header: 'Cookie',
      prefix: 'B1SESSION=',
      remark: "the session is the token; the load balancer's cookie is not sent",
    },
  ),
  form('sap-concur-password', 'SAP Concur (user)', '/oauth2/v0/token', { grant_type: 'password', ...PASSWORD }, POST),
  form(
    'sap-fieldglass',
    'SAP Fieldglass',
    '/api/oauth2/v2.0/token?grant_type=client_credentials&response_type=token',
    {},
    {
      ...BASIC,
      fields: { 'x-applicationkey': '<application key>' },
    },
  ),
  form(
    'sap-success-factors',
    'SAP SuccessFactors',
    '/oauth/token',
    {
      grant_type: 'urn:ietf:params:oauth:grant-type:saml2-bearer',
      company_id: '<company id>',
      client_id: '<api key>',
      assertion: '<SAML assertion>',
      new_token: 'true',
    },
    { remark: 'the SAML assertion is made beforehand, with a lifetime of years' },
  ),
  login(
    'sellercloud',
    'Sellercloud',
    '/api/token',
    { Username: '<username>', Password: '<password>' },
    {
      expires: 'expires_in',
      remark: 'the host of token endpoint and API is in the response of `/api/server-by-team`',
    },
  ),
  login(
    'semble',
    'Semble',
    '/graphql',
    { query: 'mutation { signIn(email: "<e-mail>", password: "<password>") { token } }' },
    {
      token: 'data.signIn.token',
      header: 'X-Token',
    },
  ),
  form('servicenow-jwt', 'ServiceNow (JWT)', '/oauth_token.do', JWT_BEARER, {
    ...POST,
    assertion: { hasKeyId: true, audience: '<client_id>', claims: { sub: '<user>' } },
  }),
  signed(
    'sharepoint-online-v1',
    'SharePoint Online v1',
    '/<tenant>/oauth2/token',
    { resource: 'https://<tenant>.sharepoint.com' },
    {
      assertion: { hasThumbprint: true },
      callFields: { accept: 'application/json;odata=verbose' },
    },
  ),
  login('shopworks', 'ShopWorks', '/signin', PASSWORD, { token: 'id_token', lifetimeMs: 3_600_000, ...RAW }),
  form('tailscale', 'Tailscale', '/api/v2/oauth/token', {}, POST),
  login(
    'timify',
    'Timify',
    '/v1/auth/token',
    { appid: '<app id>', appsecret: '<app secret>' },
    {
      token: 'accessToken',
      expires: 'expires',
      ...RAW,
    },
  ),
  login(
    'toast',
    'Toast',
    '/authentication/v1/authentication/login',
    {
      clientId: '<client id>',
      clientSecret: '<client secret>',
      userAccessType: 'TOAST_MACHINE_CLIENT',
    },
    {
      token: 'token.accessToken',
      expires: 'token.expiresIn',
      callFields: { 'toast-restaurant-external-id': '<restaurant id>' },
    },
  ),
  login(
    'ukg-pro-wfm-ropc',
    'UKG Pro Workforce Management',
    '/oauth/token',
    {
      grant_type: 'http://auth0.com/oauth/grant-type/password-realm',
      audience: 'https://wfm.ukg.net/api',
      realm: '<tenant>',
      ...PASSWORD,
    },
    { ...POST, expires: 'expires_in' },
  ),
  login('valley', 'Valley', '/api/v1/auth/get-token', EMAIL, { expires: 'expires_in' }),
  form('veeva-vault', 'Veeva Vault', '/api/<version>/auth', PASSWORD, {
    token: 'sessionId',
    expires: '',
    ...RAW,
    callFields: { accept: 'application/json' },
  }),
  form(
    'workday-cc',
    'Workday (client credentials)',
    '/ccx/oauth2/<tenant>/token',
    { grant_type: 'client_credentials', tenant_alias: '<tenant alias>' },
    { fields: { authorization: 'ID <client id:secret in base64>' } },
  ),
  form(
    'workday-refresh-token',
    'Workday (refresh token)',
    '/ccx/oauth2/<tenant>/token',
    {
      grant_type: 'refresh_token',
      refresh_token: '<refresh token>',
    },
    { ...BASIC, expires: '', lifetimeMs: 3_600_000 },
  ),
  login('yotpo', 'Yotpo', '/core/v3/stores/<store>/access_tokens', { secret: '<secret>' }, { header: 'X-Yotpo-Token' }),
];
