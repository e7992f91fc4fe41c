/**
 * Partners with the client-credentials grant, and what differs from RFC 6749 §4.4 in each: 102 of the 103 entries with `auth_mode: OAUTH2_CC` of the
 * public catalogue NangoHQ/nango, packages/providers/providers.yaml, in the revision 0004941efdc4; the other is in unserved-partners.ts. Facts only. Left out: scopes that the
 * customer chooses, and a Content-Type or Accept that an application sends itself.
 */
import { partner } from './partner-shape.ts';
import type { Differences, PartnerShape } from './partner-shape.ts';

/** Id and secret in the form. */
function post(key: string, name: string, target: string, given: Differences = {}): PartnerShape {
  return partner(key, name, target, given);
}

/** Id and secret in HTTP Basic. */
function basic(key: string, name: string, target: string, given: Differences = {}): PartnerShape {
  return partner(key, name, target, { client: 'client_secret_basic', ...given });
}

/** Id and secret in a JSON object. */
function json(key: string, name: string, target: string, given: Differences = {}): PartnerShape {
  return partner(key, name, target, { format: 'json', ...given });
}

const ENTRA = '/<tenant>/oauth2/v2.0/token';
const ADP = ['ADP Lyric', 'RUN Powered by ADP', 'ADP Workforce Now', 'ADP Workforce Now Next Generation'];
const GRAPH = ['Microsoft Intune', 'Excel', 'Power BI', 'PowerPoint', 'Word'];

export const OAUTH_PARTNERS: readonly PartnerShape[] = [
  basic('1password-users', '1Password (Users API)', '/v1beta1/users/oauth2/token'),
  basic('8x8', '8x8', '/oauth/v2/token'),
  post('acumatica', 'Acumatica', '/identity/connect/token', {
    grant: 'password',
    parameters: { username: '<username>', password: '<password>' },
  }),
  post('adobe-umapi', 'Adobe User Management', '/ims/token/v2', { callFields: { 'x-api-key': '<client_id>' } }),
  basic('adoxx-cc', 'ADOXX', '/<product>/oauth2/token'),
  post('adp', 'ADP', '/auth/oauth/v2/token', { also: ADP, needsCertificate: true }),
  post('agentcard', 'Agentcard', '/api/v2/oauth/token'),
  post('agiloft-cc', 'Agiloft', '/ewws/otoken'),
  basic('athenahealth', 'athenahealth', '/oauth2/v1/token'),
  post('atlassian-service-account-oauth2', 'Atlassian (service account)', '/oauth/token'),
  json('auth0-cc', 'Auth0', '/oauth/token', { parameters: { audience: '<audience>' } }),
  post('availity', 'Availity', '/v1/token'),
  basic('bandwidth', 'Bandwidth', '/api/v1/oauth2/token'),
  post('bigchange', 'BigChange', '/auth/tokens', { callFields: { 'customer-id': '<customer id>' } }),
  json('bliro', 'Bliro', '/oauth/token', { parameters: { audience: 'https://api.bliro.io' } }),
  basic('bol-com', 'bol.com', '/token', { callFields: { accept: 'application/vnd.retailer.v10+json' } }),
  basic('brightcrowd', 'BrightCrowd', '/oauth2/token'),
  json('chartboost', 'Chartboost', '/v5/oauth/token', {
    parameters: { audience: 'https://public.api.gateway.chartboost.com' },
  }),
  basic('checkout-com', 'Checkout.com', '/connect/token'),
  basic('checkout-com-sandbox', 'Checkout.com (sandbox)', '/connect/token'),
  post('cloudentity', 'Cloudentity', '/<tenant>/<workspace>/oauth2/token'),
  basic('commercetools', 'commercetools', '/oauth/token'),
  post('conductorone', 'ConductorOne', '/auth/v1/token'),
  json('connectwise-rmm', 'ConnectWise RMM', '/v1/token'),
  post('coupa-compass', 'Coupa Compass', '/oauth2/token'),
  post('crowdstrike', 'CrowdStrike', '/oauth2/token'),
  post('databricks-account', 'Databricks (account)', '/oidc/accounts/<account>/v1/token'),
  post('databricks-workspace', 'Databricks (workspace)', '/oidc/v1/token'),
  basic('domo', 'Domo', '/oauth/token'),
  json('dope-security', 'dope.security', '/v1/partner/oauth/token'),
  post('dynatrace-oauth', 'Dynatrace', '/sso/oauth2/token', { parameters: { resource: 'urn:dtaccount:<account>' } }),
  basic('emarsys-oauth', 'Emarsys', '/oauth2/token'),
  post('firefish', 'Firefish', '/authorization/token'),
  basic('fiserv', 'Fiserv', '/fts-apim/oauth2/v2', { unit: 'milliseconds' }),
  post('gainsight-cc', 'Gainsight CC', '/oauth2/token'),
  basic('gebruder-weiss', 'Gebrüder Weiss', '/token', { callFields: { 'accept-language': 'en-US' } }),
  post('grammarly', 'Grammarly', '/v4/api/oauth2/token'),
  basic('greenhouse-harvest-oauth2-cc', 'Greenhouse Harvest', '/token?grant_type=client_credentials', {
    format: 'json',
    grant: '',
    parameters: { sub: '<user id>' },
  }),
  basic('halo-psa', 'Halo PSA', '/auth/token'),
  post('immybot', 'ImmyBot', ENTRA, {
    parameters: { scope: 'https://<instance>.immy.bot/.default' },
    callFields: { accept: 'application/json' },
  }),
  json('ingenious-build', 'INGENIOUS.BUILD', '/api/v2/pub/oauth/token'),
  post('ironclad-cc', 'Ironclad', '/oauth/token', { callFields: { 'x-as-user-email': '<e-mail>' } }),
  post('jamf', 'Jamf Pro', '/api/v1/oauth/token'),
  basic('kno-commerce', 'Kno Commerce', '/api/oauth2/token?grant_type=client_credentials', { grant: '' }),
  post('listrak', 'Listrak', '/oauth2/token'),
  basic('malwarebytes', 'Malwarebytes', '/oauth2/token', { callFields: { accountid: '<account id>' } }),
  post('marketo', 'Marketo', '/identity/oauth/token'),
  basic('medallia', 'Medallia', '/oauth/<tenant>/token'),
  post('microsoft-business-central', 'Microsoft Business Central', ENTRA),
  post('microsoft-dynamics-365-finance-and-operations-cc', 'Microsoft Dynamics 365 Finance and Operations', ENTRA, {
    parameters: { scope: 'https://<environment>/.default' },
  }),
  post('microsoft-oauth2-cc', 'Microsoft Graph', ENTRA, { also: GRAPH }),
  post('mimecast', 'Mimecast', '/oauth/token'),
  post('nerdio', 'Nerdio', ENTRA, { parameters: { scope: '<scope>' } }),
  basic('nexthink', 'Nexthink', '/oauth2/default/v1/token', { parameters: { scope: 'service:integration' } }),
  post('ninjaone-rmm', 'NinjaOne RMM', '/ws/oauth/token'),
  post('okta-cc', 'Okta', '/oauth2/v1/token', {
    client: 'private_key_jwt',
    parameters: { scope: '<scope>' },
    assertion: { hasKeyId: true },
  }),
  post('onelogin', 'OneLogin', '/auth/oauth2/v2/token'),
  post('optum-real', 'Optum Real', '/apip/auth/sntl/v1/token'),
  basic('oracle-cloud-identity', 'Oracle Cloud Identity', '/oauth2/v1/token'),
  post('ory', 'Ory', '/oauth2/token'),
  json('pax8', 'Pax8', '/v1/token', { parameters: { audience: 'https://api.pax8.com' } }),
  post('paychex', 'Paychex', '/auth/oauth/v2/token'),
  post('paylocity', 'Paylocity (Weblink)', '/IdentityServer/connect/token'),
  post('paylocity-nextgen', 'Paylocity (NextGen)', '/public/security/v1/token'),
  post('pendo-oauth', 'Pendo', '/oauth/v1/token', { parameters: { scope: 'read:me' } }),
  json('personio', 'Personio v1', '/v1/auth', {
    grant: '',
    token: 'data.token',
    expires: '',
    callFields: { 'x-personio-partner-id': '<partner id>', 'x-personio-app-id': '<app id>' },
  }),
  post('personio-v2', 'Personio v2', '/v2/auth/token'),
  post('pingboard', 'Pingboard', '/oauth/token'),
  post('pingone-cc', 'PingOne', '/<environment>/as/token'),
  post('pipedream-oauth2-cc', 'Pipedream', '/v1/oauth/token'),
  post('revivn', 'Revivn', '/oauth/token'),
  json('roller', 'Roller', '/token', { grant: '' }),
  basic('rydoo', 'Rydoo', '/connect/token'),
  post('salesforce-cc', 'Salesforce', '/services/oauth2/token', { expires: '' }),
  basic('sap-ariba', 'SAP Ariba', '/v2/oauth/token', {
    grant: 'openapi_2lo',
    callFields: { apikey: '<application key>', 'x-ariba-network-id': '<network id>' },
  }),
  post('sap-concur', 'SAP Concur', '/oauth2/v0/token'),
  basic('sap-odata-oauth2-cc', 'SAP S/4HANA Cloud', '/oauth/token'),
  post('sedna', 'Sedna', '/platform/oauth/token'),
  post('sellsy-oauth2-cc', 'Sellsy', '/oauth2/access-tokens'),
  post('servicenow-oauth2-cc', 'ServiceNow', '/oauth_token.do'),
  post('sharepoint-online-oauth2-cc', 'SharePoint Online v2', ENTRA),
  post('shopify-cc', 'Shopify', '/admin/oauth/access_token', { header: 'X-Shopify-Access-Token' }),
  json('shopware', 'Shopware', '/api/oauth/token'),
  post('sophos-central', 'Sophos Central', '/api/v2/oauth2/token', {
    parameters: { scope: 'token' },
    callFields: { 'x-tenant-id': '<tenant id>' },
  }),
  basic('spotify-oauth2-cc', 'Spotify', '/api/token'),
  basic('swoogo', 'Swoogo', '/api/v1/oauth2/token'),
  post('tapclicks', 'TapClicks', '/oauth/accesstoken'),
  post('thomson-reuters-legal-tracker', 'Thomson Reuters Legal Tracker', '/onepass/oauth2/token'),
  basic('thomson-reuters-legal-tracker-tr-account', 'Thomson Reuters Legal Tracker (TR account)', '/oauth/token', {
    parameters: { audience: '506f6a92-4fd1-43c1-bf18-4e3735ea55aa' },
  }),
  post('trafft', 'Trafft', '/api/v2/token'),
  basic('transporeon-carrier-oauth2-cc', 'Transporeon Carrier', '/oauth2/token?grant_type=client_credentials', {
    grant: '',
  }),
  basic(
    'transporeon-oauth2-cc',
    'Transporeon Appointment Scheduling',
    '/api/identity/v2/oauth2/token?grant_type=client_credentials',
    { grant: '' },
  ),
  basic('trustpilot-cc', 'Trustpilot', '/v1/oauth/oauth-business-users-for-applications/accesstoken'),
  basic('twitter-oauth2-cc', 'Twitter', '/oauth2/token'),
  post('ukg-pro-cc', 'UKG Pro HCM', '/signin/oauth2/t/<tenant>/access_token'),
  post('ukg-ready', 'UKG Ready', '/ta/rest/v2/companies/<company>/oauth2/token'),
  json('vanta', 'Vanta', '/oauth/token'),
  basic('xero-oauth2-cc', 'Xero', '/connect/token'),
  basic('yokoy', 'Yokoy', '/oauth2/token', { callFields: { 'x-yk-auth-method': 'yokoy' } }),
  basic('zoom-cc', 'Zoom', '/oauth/token', {
    grant: 'account_credentials',
    parameters: { account_id: '<account id>' },
  }),
  json('zoominfo', 'ZoomInfo', '/authenticate', {
    grant: '',
    client: 'none',
    parameters: { username: '<username>', password: '<password>' },
    token: 'jwt',
    expires: '',
  }),
  post('zuora', 'Zuora', '/oauth/token'),
];
