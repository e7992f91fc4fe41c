/**
 * Which names and addresses lead to this machine alone: what is sent there crosses no network. Pure; nothing is resolved.
 */

/** True for `localhost`, 127.0.0.0/8 and ::1, with or without brackets. Other names count as network, wherever they lead. */
export function isLoopbackHost(host: string): boolean {
  const bare = host.replace(/^\[|\]$/g, '');
  return bare === 'localhost' || bare === '::1' || /^127(?:\.(?:\d|[1-9]\d|1\d\d|2[0-4]\d|25[0-5])){3}$/.test(bare);
}
