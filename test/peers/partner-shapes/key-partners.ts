/**
 * Some of the several hundred partners of the public catalogue NangoHQ/nango, packages/providers/providers.yaml, that give a fixed key
 * (`auth_mode: API_KEY` or `BASIC`): one for each form of the header field, from the revision 0004941efdc4, and 29 of the thirty that the
 * seed 1795922267 drew from the 430 entries without a shape of its package, version 0.71.10; the other is Bill. Facts only.
 */
import { keyPartner, queryPartner } from './partner-shape.ts';
import type { PartnerShape } from './partner-shape.ts';

const JSON_TYPE = { 'content-type': 'application/json' };

export const KEY_PARTNERS: readonly PartnerShape[] = [
  keyPartner('airtable-pat', 'Airtable', {}),
  keyPartner('anthropic', 'Anthropic', { header: 'x-api-key', callFields: { 'anthropic-version': '<version>' } }),
  keyPartner('baserow', 'Baserow', { prefix: 'Token ' }),
  keyPartner('callrail', 'Callrail', { prefix: 'Token token=' }),
  keyPartner('clay', 'Clay', { prefix: '' }),
  keyPartner('datadog', 'Datadog', { header: 'dd-api-key', callFields: { 'dd-application-key': '<application key>' } }),
  keyPartner('gitlab-pat', 'GitLab', { header: 'private-token' }),
  keyPartner('klaviyo', 'Klaviyo', { prefix: 'Klaviyo-API-Key ', callFields: { revision: '2024-07-15' } }),
  keyPartner('okta-api-key', 'Okta (API token)', { prefix: 'SSWS ' }),
  keyPartner('typefully', 'Typefully', { header: 'x-api-key', prefix: 'Bearer ' }),
  keyPartner('twilio', 'Twilio, and all others with HTTP Basic', { prefix: 'Basic ' }),
  // Drawn.
  keyPartner('1password-events', '1Password (Events API)', {}),
  keyPartner('apify', 'Apify', {}),
  keyPartner('avalara', 'Avalara', { prefix: 'Basic ', callFields: { 'x-avalara-client': '<client>', ...JSON_TYPE } }),
  keyPartner('certn', 'Certn', {}),
  keyPartner('contactout', 'ContactOut', { header: 'token', callFields: { authorization: 'basic' } }),
  queryPartner('diffbot', 'Diffbot', 'token'),
  keyPartner('dixa', 'Dixa', { prefix: '' }),
  keyPartner('fellow', 'Fellow', { header: 'x-api-key' }),
  keyPartner('fullenrich', 'FullEnrich', {}),
  queryPartner('google-maps', 'Google Maps', 'key'),
  keyPartner('helpscout-docs', 'Help Scout Docs', { prefix: 'Basic ' }),
  keyPartner('hex', 'Hex', {}),
  keyPartner('itglue', 'IT Glue', { header: 'x-api-key', callFields: { 'content-type': 'application/vnd.api+json' } }),
  keyPartner('judgeme', 'Judge.me', { header: 'x-api-token', callQuery: { shop_domain: '<shop domain>' } }),
  keyPartner('knowbe4', 'KnowBe4', {}),
  keyPartner('mattermost', 'Mattermost', {}),
  keyPartner('missive', 'Missive', { header: 'api_token' }),
  keyPartner('nyne-ai', 'Nyne AI', { header: 'x-api-secret', callFields: { 'x-api-key': '<api key>', ...JSON_TYPE } }),
  keyPartner('ordinal', 'Ordinal', { callFields: JSON_TYPE }),
  keyPartner('razorpay', 'Razorpay', { prefix: 'Basic ' }),
  keyPartner('recall-ai', 'Recall.ai', { prefix: '' }),
  keyPartner('scavio', 'Scavio', {}),
  keyPartner('sedna-basic', 'Sedna (Basic)', { prefix: 'Basic ' }),
  keyPartner('shortcut', 'Shortcut', { header: 'shortcut-token' }),
  queryPartner('smartlead-ai', 'Smartlead.ai', 'api_key'),
  keyPartner('thrivecart-api-key', 'ThriveCart', {}),
  keyPartner('tldv', 'tl;dv', { header: 'x-api-key' }),
  queryPartner('upsales', 'Upsales', 'token'),
  keyPartner('zigpoll', 'Zigpoll', { prefix: '' }),
];
