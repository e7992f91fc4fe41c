/**
 * The partners of the public catalogue NangoHQ/nango, packages/providers/providers.yaml, revision 0004941efdc4, that the sidecar cannot
 * serve, with each reason.
 */
import type { UnservedPartner } from './partner-shape.ts';

function unserved(key: string, name: string, ...obstacles: UnservedPartner['obstacles']): UnservedPartner {
  return { key, name, obstacles };
}

/** Of the entries with `auth_mode: OAUTH2_CC`. */
export const UNSERVED_OAUTH_PARTNERS: readonly UnservedPartner[] = [
  unserved('certn-partner', 'Certn Partner', 'the catalogue names no token endpoint'),
];

/** Of the entries with `auth_mode: TWO_STEP`. */
export const UNSERVED_OWN_FORM_PARTNERS: readonly UnservedPartner[] = [
  unserved(
    'avanan',
    'Avanan',
    'the token request is a GET',
    'the token request has a date or a signature of its own',
    'each call is signed',
  ),
  unserved('ecu360', 'ECU360', 'the token request has a JSON value that is no text'),
  unserved(
    'jobdiva',
    'JobDiva',
    'the token request is a GET',
    'the token request has a secret in its URL',
    'the token response is no JSON',
  ),
  unserved('leapsome', 'Leapsome', 'the token request is a GET', 'the token request has a secret in its URL'),
  unserved(
    'redtail-crm-sandbox',
    'Redtail CRM',
    'the token request is a GET',
    'a header field of the call is computed from the token',
  ),
  unserved('sage-intacct', 'Sage Intacct (XML)', 'the token request is XML', 'the token response is no JSON'),
  unserved('salesforce-cdp', 'Salesforce Data Cloud', 'a second token request needs the token of the first'),
  unserved('salesmsg', 'Salesmsg', 'each token is requested with the previous one'),
  unserved('setmore', 'Setmore', 'the token request is a GET', 'the token request has a secret in its URL'),
  unserved('shopvox', 'ShopVox', 'the call has the token in its URL'),
  unserved('tableau', 'Tableau', 'the token request is nested JSON'),
  unserved(
    'tripletex',
    'Tripletex',
    'the token request has a date or a signature of its own',
    'a header field of the call is computed from the token',
  ),
  unserved('veeva-vault-oauth', 'Veeva Vault (OAuth)', 'a second token request needs the token of the first'),
  unserved(
    'workday-adaptive-planning',
    'Workday Adaptive Planning',
    'a second token request needs the token of the first',
  ),
];
