/**
 * Some of the several hundred partners of the public catalogue NangoHQ/nango, packages/providers/providers.yaml, revision 0004941efdc4, that
 * give a fixed key (`auth_mode: API_KEY` or `BASIC`): one for each form of the header field. Facts only.
 */
import { keyPartner } from './partner-shape.ts';
import type { PartnerShape } from './partner-shape.ts';

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
];
