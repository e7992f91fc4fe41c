/**
 * Loaded into the sidecar (`node --import`) by the tests whose client names the partner's host: `partner.test` is this machine.
 * Clients that use a proxy look up no name themselves, and many never use one for loopback.
 */
import dns from 'node:dns';
import { syncBuiltinESMExports } from 'node:module';

const { lookup } = dns;

function lookupPartner(name: string, ...rest: unknown[]): void {
  Reflect.apply(lookup, dns, [name === 'partner.test' ? '127.0.0.1' : name, ...rest]);
}

Object.assign(dns, { lookup: lookupPartner });
syncBuiltinESMExports();
