/** What the authorization server of rotating-server.ts and its parent agree on. */

export const CLIENT_ID = 'legacy-app';
export const AUDIENCE = 'https://api.partner.example/';
export const SCOPE = 'urn:example.partners.sales.individual.travel.policies.write';

/** What the parent sends: the secret first, or a new one. */
export interface SecretMessage {
  readonly secret: string;
}

/** Messages to the parent. */
export type ServerMessage =
  | { readonly kind: 'listening'; readonly url: string }
  /** The secret that was sent is the one. */
  | { readonly kind: 'rotated' }
  | { readonly kind: 'granted'; readonly token: string }
  | { readonly kind: 'refused'; readonly error: string };
