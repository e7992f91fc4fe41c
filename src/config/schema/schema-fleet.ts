/** Settings that join replicas into a fleet. */
import { matching, text, wholeNumber } from './formats/formats.ts';
import { redisUrl } from './formats/redis-url.ts';
import { setting, settingWithoutDefault } from './setting.ts';

export const fleet = {
  redisUrl: settingWithoutDefault({
    doc: 'Redis (7 or later) or Valkey through which replicas share one token for each credential and one quota for each throttle: throttle.rate and the learned rate apply to all replicas together. Without it, and without fleet.redisUrlFile, this process shares nothing. A password in it is a secret.',
    format: redisUrl(),
    env: 'SIDECAR_REDIS_URL',
  }),
  redisUrlFile: settingWithoutDefault({
    doc: 'File that holds the URL of fleet.redisUrl; one trailing line end is dropped. Read again for every connection.',
    format: text('a path'),
    env: 'SIDECAR_REDIS_URL_FILE',
  }),
  caFile: settingWithoutDefault({
    doc: 'PEM file of the certificate authorities to trust for a rediss: URL, instead of the built-in roots. Read again for every connection.',
    format: text('a path'),
    env: 'SIDECAR_FLEET_CA_FILE',
  }),
  keyPrefix: setting({
    doc: 'Prefix of every key, followed by a colon. Replicas with different prefixes share nothing.',
    format: matching(/^[\w.:-]{1,64}$/, '1 to 64 letters, digits or characters of "_.:-"'),
    default: 'bearer-sidecar',
    env: 'SIDECAR_FLEET_KEY_PREFIX',
  }),
  timeoutMs: setting({
    doc: 'Longest wait for the reply to one command; after that this process continues alone.',
    format: wholeNumber(1, 1000),
    default: 25,
    env: 'SIDECAR_FLEET_TIMEOUT_MS',
  }),
};
