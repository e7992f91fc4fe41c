/**
 * What a partner calls the address of its authorization server: a base URL, the whole token URL, or the URL of published metadata
 * (RFC 8414, OpenID Connect Discovery 1.0). Pure.
 */
import { isTokenPath, splitTokenUrl } from '../../token/endpoint/token-url.ts';
import type { InitSettingKey } from './init-settings.ts';

const WELL_KNOWN = /^(.*)\/\.well-known\/(?:openid-configuration|oauth-authorization-server)(\/.*)?$/;

/**
 * The settings of an address. What cannot be one is returned as `auth.url`, whose format has the message.
 * @param tokenPath as given by the user; undefined: not given
 */
export function readAuthAddress(text: string, tokenPath?: string): ReadonlyMap<InitSettingKey, string> {
  const url = URL.parse(text);
  const given = new Map<InitSettingKey, string>([['auth.url', text]]);
  if (url === null || !/^https?:$/.test(url.protocol) || url.username !== '' || url.password !== '' || url.hash !== '')
    return given;
  const [, before, after = ''] = WELL_KNOWN.exec(url.pathname) ?? [];
  if (before !== undefined) return new Map([['auth.issuer', url.origin + before + after]]);
  if (tokenPath !== undefined) return given;
  const parts = isTokenPath(url.pathname) || url.search !== '' ? splitTokenUrl(url) : undefined;
  if (parts === undefined) return given;
  return new Map([
    ['auth.url', parts.authUrl],
    ['auth.tokenPath', parts.tokenPath],
  ]);
}
