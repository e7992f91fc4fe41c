/** Host fields: none, two, foreign, disguised (RFC 9112 §3.2; DNS rebinding: CVE-2025-24010, CVE-2025-66414, CVE-2024-28224). */
import { CLOSE, forwarded, refusedByRfc, refusedHere } from './case.ts';

function hostLine(line: string): string {
  return `GET /x HTTP/1.1\r\n${line}\r\n${CLOSE}\r\n`;
}

function named(...hosts: readonly string[]): Record<string, string> {
  return Object.fromEntries(hosts.map((host) => [`the Host ${JSON.stringify(host)}`, hostLine(`Host: ${host}`)]));
}

export const HOSTS = [
  ...refusedByRfc(
    'RFC 9112 §3.2',
    {
      'no Host': `GET /x HTTP/1.1\r\n${CLOSE}\r\n`,
      'the same Host twice': hostLine('Host: localhost\r\nHost: localhost'),
      'a foreign Host behind': hostLine('Host: localhost\r\nHost: evil.example'),
      'a foreign Host in front': hostLine('Host: evil.example\r\nHost: localhost'),
      'a Host in another case behind': hostLine('Host: localhost\r\nhOST: evil.example'),
      'two Hosts in HTTP/1.0': 'GET /x HTTP/1.0\r\nHost: localhost\r\nHost: evil.example\r\n\r\n',
      'a blank before the colon of Host': hostLine('Host : localhost'),
      'a foreign Host on a second line of it': hostLine('Host: localhost\r\n evil.example'),
      'a Host on a second line of it': hostLine('Host:\r\n localhost'),
      'a Host under a name with an underscore': hostLine('_Host: localhost'),
      'only X-Forwarded-Host': hostLine('X-Forwarded-Host: localhost'),
      'an empty Host': hostLine('Host:'),
      'a Host with a NUL': hostLine('Host: local\0host'),
      ...named(
        'user@localhost',
        'evil.example@localhost',
        'localhost@evil.example',
        'local host',
        'localhost, evil.example',
        'localhost/x',
        'localhost\\evil.example',
        'localhost#x',
        'localhost?x',
        'localhost:port',
        'localhost:-1',
        'localhost:80:80',
        'http://localhost',
        '[::1',
        '::1',
        '"localhost"',
        '<localhost>',
        'localhost:80 evil.example',
        'localhost:99999999',
        '[::1%25lo]',
        'l\xf6calhost',
      ),
    },
    400,
  ),
  ...refusedHere('RFC 9110 §7.4: misdirected, here by DNS rebinding', {
    ...named(
      'evil.example',
      'evil.example:80',
      'localhost.evil.example',
      'evil-localhost',
      'localhost.',
      '127.1',
      '127.0.0.2',
      '2130706433',
      '0x7f000001',
      '0177.0.0.1',
      '0.0.0.0',
      '169.254.169.254',
      '[::2]',
      '[::ffff:127.0.0.1]',
      '%6cocalhost',
      'localhost%00.evil.example',
    ),
  }),
  ...forwarded('RFC 9112 §3.2', {
    'no Host in HTTP/1.0': ['GET /x HTTP/1.0\r\n\r\n'],
    'a Host with a port': [hostLine('Host: localhost:18080')],
    'a Host with an empty port': [hostLine('Host: localhost:')],
    'a Host in capitals': [hostLine('HOST: LOCALHOST')],
    'a Host without a blank': [hostLine('Host:localhost')],
    'a Host between tabs': [hostLine('Host:\tlocalhost\t')],
    'a Host that is an address': [hostLine('Host: 127.0.0.1')],
    'a foreign X-Forwarded-Host beside it': [hostLine('Host: localhost\r\nX-Forwarded-Host: evil.example')],
    'a foreign Forwarded beside it': [hostLine('Host: localhost\r\nForwarded: host=evil.example')],
  }),
];
