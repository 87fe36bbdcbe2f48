/**
 * What a stage may try against those it runs beside: small programs, each with what finding looks like. They are run in every
 * isolation, from a server of root's and from one of another user's; `notHeld` says where one of them finds something, and
 * docs/security.md says the same.
 *
 * A program finds something where it prints FOUND or the canary. It knows its world from its environment: VICTIM (the workspace of
 * another key's running run), VICTIM_RUN, DATA (the server's data folder), CHECKOUT, SERVER_PID, the ports API, BROKER and OTHER
 * (somebody's on loopback), ADDRESS (of the machine), and SOCKET (an abstract one). `./probe` tries system calls; `machines FILE`
 * says whether that file is the machine's own, and not one of an image (which IN_IMAGE tells), and `opens FILE` whether it can be
 * written to. All are for the shell and the tools of a busybox too.
 */

/** Where stages run on the server's machine, and who has started that: root, or another user. */
export const MACHINE_WAYS = [
  'process, root',
  'process, another user',
  'sandbox, root',
  'sandbox, another user',
  'container, root',
  'container, another user',
] as const;
/** The last one: on a node of a cluster, whoever has started the server. */
const WAYS = [...MACHINE_WAYS, 'Pod'] as const;
export type Way = (typeof WAYS)[number];

export interface Program {
  readonly name: string;
  /** What it would have found, as the end of "a stage could …". */
  readonly about: string;
  readonly script: string;
  /** The ways in which it is not held. */
  readonly notHeld?: readonly Way[] | undefined;
  /** In a Pod: by something that only the cluster can give; the suite looks whether it does. */
  readonly isClusters?: boolean | undefined;
}

const PROCESS: readonly Way[] = ['process, root', 'process, another user'];
const AS_ANOTHER: readonly Way[] = ['process, another user'];
/** Of a stage that asks for no `resources`: the bounds of a sandbox are wider than what these use. */
const EVERYWHERE: readonly Way[] = WAYS;

export const PROGRAMS: readonly Program[] = [
  // Another's files.
  ['read-workspace', "read another key's workspace", 'cat "$VICTIM/note"'],
  ['list-workspace', "list another key's workspace", 'ls "$VICTIM" | grep -q note && echo FOUND'],
  ['write-workspace', "write into another key's workspace", 'echo x > "$VICTIM/intruder" && echo FOUND'],
  ['link-workspace', "reach another key's workspace by a link", 'ln -s "$VICTIM" other; cat other/note'],
  ['hard-link', "keep another key's file by a link", 'ln "$VICTIM/note" kept && cat kept'],
  [
    'move-workspace',
    "rename another key's workspace",
    'mv "$VICTIM" "$VICTIM-moved" && { mv "$VICTIM-moved" "$VICTIM"; echo FOUND; }',
  ],
  ['list-runs', 'list the runs of others', 'ls "$DATA/work/0" | grep -vxF "${HOME##*/}" | grep -q . && echo FOUND'],
  [
    'make-run',
    "make a folder among other runs'",
    'machines "$DATA/work/0" && mkdir "$DATA/work/0/intruder" && { rmdir "$DATA/work/0/intruder"; echo FOUND; }',
  ],
  ['parent-of-home', 'reach a run by the way up from its own', 'cat "$HOME/../$VICTIM_RUN/shared/note"'],
  ['shared-tmp', "read what another key's stage has put into /tmp", 'cat /tmp/penstock-attack-note'],
  [
    'shared-var-tmp',
    "read what another key's stage has put into /var/tmp",
    'cat /var/tmp/penstock-attack-note',
    PROCESS,
  ],
  ['shared-memory', "read what another key's stage has put into /dev/shm", 'cat /dev/shm/penstock-attack-note'],
  // The server's files.
  ['api-key', "read the server's API key", 'test -s "$DATA/api-key" && echo FOUND; cat "$DATA/api-key"'],
  ['signing-key', 'read the key that signs tokens', 'cat "$DATA"/jwt* "$DATA"/*/jwt* && echo FOUND'],
  ['data-folder', "list the server's data folder", 'ls "$DATA" | grep -qvE "^(work|intruder)$" && echo FOUND'],
  ['database', "read the server's database", 'head -c 16 "$DATA/store.sqlite" | grep -q . && echo FOUND'],
  ['journal', "read the server's journal", 'ls "$DATA"/nats* && echo FOUND'],
  ['results', "read the runner's results", 'ls "$DATA/runner" && echo FOUND'],
  ['other-files', "read files of the server's folder", 'cat "$SECRET"', AS_ANOTHER],
  [
    'write-data',
    "write into the server's data folder",
    'echo x > "$DATA/intruder" && test -e "$SECRET_WITNESS" && echo FOUND',
  ],
  ['checkout-write', "write into the server's own program", 'test -w "$CHECKOUT/package.json" && echo FOUND'],
  [
    'helper-write',
    'write into the scripts that start stages',
    'test -w "$CHECKOUT/libs/executor/src/process/helper.sh" && echo FOUND',
  ],
  ['checkout-read', "read the server's own program", 'test -r "$CHECKOUT/package.json" && echo FOUND', PROCESS],
  ['modules-write', "write into the server's modules", 'test -w "$CHECKOUT/node_modules" && echo FOUND'],
  ['shadow', "read the machine's passwords", 'grep -q root /etc/shadow && echo FOUND'],
  ['passwd-write', "write into the machine's users", 'machines /etc/passwd && test -w /etc/passwd && echo FOUND'],
  ['root-home', "list root's home", 'ls -A /root | grep -q . && echo FOUND'],
  [
    'cron-write',
    'leave a job to cron',
    'for f in /etc/cron.d /var/spool/cron /etc/crontab; do machines $f && test -w $f && echo FOUND; done; true',
  ],
  [
    'path-write',
    'replace a program that others start',
    'for f in /usr/bin /usr/local/bin /bin; do machines $f && test -w $f && echo FOUND; done; true',
  ],
  // Processes.
  [
    'environment',
    "read the environment of others' processes",
    'cat /proc/[0-9]*/environ | tr "\\0" "\\n" | grep VICTIM_SECRET=',
  ],
  [
    'command-lines',
    "read the command lines of others' processes",
    'cat /proc/[0-9]*/cmdline | tr "\\0" "\\n" | grep -q -e "^--data-dir\\$" && echo FOUND',
  ],
  [
    'working-folders',
    "see the working folders of others' processes",
    'ls -l /proc/[0-9]*/cwd | grep -q "$VICTIM_RUN" && echo FOUND',
  ],
  [
    'descriptors',
    "open the descriptors of others' processes",
    'for f in /proc/[0-9]*/fd/[0-9]*; do readlink "$f" | grep -q "$VICTIM_RUN/shared/note" && cat "$f"; done; true',
  ],
  [
    'server-environment',
    "read the server's environment",
    'tr "\\0" "\\n" < "/proc/$SERVER_PID/environ" | grep -q SERVICE_ && echo FOUND',
  ],
  ['root-of-others', "look through another process's root", 'ls /proc/[0-9]*/root/root/.bashrc && echo FOUND'],
  ['signal-server', 'send signals to the server', './probe signal "$SERVER_PID"'],
  ['trace-server', 'trace the server', './probe ptrace "$SERVER_PID"'],
  ['server-memory', "read the server's memory", './probe read-memory "$SERVER_PID"'],
  ['server-descriptor', "take the server's descriptors", './probe take-descriptor "$SERVER_PID"'],
  ['trace-helper', 'trace the process that starts its stage', './probe ptrace 1'],
  ['helper-descriptor', 'take descriptors of the process that starts its stage', './probe take-descriptor 1'],
  [
    'spare-others',
    'make the kernel kill the process that starts its stage first',
    // `$$`: a stage's own shell that its helper has forked would have the helper's environment.
    ': $$; test -n "$IN_IMAGE" || for f in /proc/[0-9]*/oom_score_adj; do case "$(tr "\\0" "\\n" < "${f%/*}/environ" 2>/dev/null | grep -c PENSTOCK_STAGE=)" in 0) echo 1000 > "$f" && echo FOUND;; esac; done; true',
    ['process, another user', 'sandbox, another user'],
  ],
  // Rights.
  ['become-root', 'become root', 'grep -Eq "^ *0 +[1-9]" /proc/self/uid_map || ./probe setuid'],
  ['groups', 'join other groups', './probe setgroups'],
  [
    'capabilities',
    'have a right of root’s',
    'grep -E "^Cap(Eff|Prm|Amb)" /proc/self/status | grep -qv "0000000000000000$" && echo FOUND',
  ],
  [
    'inheritable',
    'have a right of root’s among those that a program of root’s could inherit',
    'grep "^CapInh" /proc/self/status | grep -qv "0000000000000000$" && echo FOUND',
    // Of no use to it: the next one, and docs/adr/0014.
    ['process, root'],
  ],
  ['inherited', 'use a right of root’s that a program of root’s could inherit', './probe inherited'],
  [
    'new-privileges',
    'gain rights by a program that gives some',
    'grep -q "NoNewPrivs:.*0" /proc/self/status && echo FOUND',
  ],
  ['change-root', 'change its root', './probe chroot'],
  ['devices', 'make a device and open it', './probe device'],
  [
    'raw-disk',
    'open the disks of the machine',
    'for f in /dev/sd? /dev/vd? /dev/nvme?n? /dev/mem /dev/port; do head -c 1 "$f" | grep -qa . && echo FOUND; done; true',
  ],
  ['user-namespace', 'make a user namespace', './probe user-namespace', PROCESS],
  ['mount-namespace', 'mount inside a user namespace of its own', 'mkdir -p mounted; ./probe mount-namespace', PROCESS],
  ['mount', 'mount', 'mkdir -p mounted; ./probe mount'],
  [
    'unmount',
    'uncover what is covered',
    './probe unmount "$DATA" && ls "$DATA" | grep -qvE "^(work|intruder)$" && echo FOUND',
  ],
  ['join-namespaces', "join the server's namespaces", './probe set-namespace "/proc/$SERVER_PID/ns/mnt"'],
  // The kernel.
  ['keyrings', "use the kernel's keyrings", './probe keyring; ./probe add-key', PROCESS],
  ['bpf', 'load programs into the kernel', './probe bpf'],
  ['userfaultfd', 'handle page faults (userfaultfd)', './probe userfaultfd', PROCESS],
  ['io-uring', 'use io_uring', './probe io-uring', PROCESS],
  ['perf', 'measure other processes', './probe perf'],
  ['set-time', 'set the clock', './probe set-time'],
  ['host-name', "change the machine's name", './probe set-host-name'],
  ['kernel-log', "read the kernel's log", './probe kernel-log', PROCESS],
  ['priority', 'put itself before others', './probe priority'],
  ['limits', 'raise its own limits', './probe raise-limit'],
  ['terminal', 'type into a terminal', './probe terminal'],
  ['core-pattern', 'have the kernel start a program at a crash', 'opens /proc/sys/kernel/core_pattern && echo FOUND'],
  [
    'sysctl',
    "change the kernel's settings",
    'find /proc/sys -type f ! -name ns_last_pid ! -name pid_max ! -path "/proc/sys/user/*" | while read -r f; do opens "$f" && v=$(cat "$f") && echo "$v" > "$f" && echo FOUND && break; done; true',
  ],
  ['sysrq', 'crash the machine', 'opens /proc/sysrq-trigger && echo FOUND'],
  [
    'sys-write',
    "change the kernel's objects",
    'find /sys -maxdepth 3 -type f | while read -r f; do opens "$f" && echo FOUND && break; done; true',
  ],
  [
    'control-groups',
    'make a control group',
    'for f in /sys/fs/cgroup /sys/fs/cgroup/*; do mkdir $f/attack 2>/dev/null && { rmdir $f/attack; echo FOUND; }; done; true',
  ],
  [
    'release-agent',
    'have a control group start a program',
    'for f in /sys/fs/cgroup/*/release_agent; do opens $f && echo FOUND; done; true',
  ],
  // The network.
  ['loopback', "reach somebody's port on loopback", './probe connect 127.0.0.1 "$OTHER"', PROCESS],
  ['loopback-6', "reach somebody's port on ::1", './probe connect6 "$OTHER6"', PROCESS],
  ['server-port', "reach the server's port on loopback", './probe connect 127.0.0.1 "$API"', PROCESS],
  ['broker-port', 'reach the broker', './probe connect 127.0.0.1 "$BROKER"', PROCESS],
  ['own-address', 'reach a port of the machine by its own address', './probe connect "$ADDRESS" "$OTHER"', EVERYWHERE],
  ['abstract-socket', 'reach an abstract socket', './probe abstract "$SOCKET"', PROCESS],
  ['raw-socket', 'send raw packets', './probe raw'],
  ['sniff', 'see the packets of others', './probe packet'],
  [
    'container-engine',
    "reach the container engine's socket",
    'for f in /run/docker.sock /run/podman/podman.sock; do test -w $f && echo FOUND; done; true',
  ],
  // Amounts.
  ['processes', 'start a thousand processes', './probe fork 1024', MACHINE_WAYS, true],
  ['memory', 'use more memory than it asks for', './probe memory 512', EVERYWHERE],
  [
    'shared-memory-size',
    'fill memory by /dev/shm',
    'head -c 300m /dev/zero > /dev/shm/penstock-attack-large 2>/dev/null && echo FOUND; rm -f /dev/shm/penstock-attack-large',
    MACHINE_WAYS,
  ],
  ['file-size', 'fill the disk', 'head -c 300m /dev/zero > large && echo FOUND; rm -f large', EVERYWHERE],
  [
    'inodes',
    'fill the disk with files',
    'mkdir many; i=0; while [ $i -lt 100 ]; do mkdir many/$i && (cd many/$i && seq 1 100 | xargs touch) || break; i=$((i+1)); done; [ $i -eq 100 ] && echo FOUND; rm -rf many',
    EVERYWHERE,
  ],
].map(([name, about, script, notHeld, isClusters]) => ({ name, about, script, notHeld, isClusters }) as Program);

/** The table of docs/security.md. */
export function heldTable(): string {
  const mark = ({ notHeld, isClusters }: Program, way: Way): string => {
    if (way === 'Pod' && isClusters === true) return 'as its cluster does';
    return notHeld?.includes(way) === true ? 'not held' : 'held';
  };
  return [
    `| a stage could … | ${WAYS.join(' | ')} |`,
    `|---|${WAYS.map(() => '---').join('|')}|`,
    ...PROGRAMS.map((program) => `| ${program.about} | ${WAYS.map((way) => mark(program, way)).join(' | ')} |`),
  ].join('\n');
}
