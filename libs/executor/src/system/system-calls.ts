/** The system calls that stages in a sandbox, or in a container of podman's, are refused, by their numbers on the machines that Penstock runs on. */

export type Architecture = 'x64' | 'arm64';

export interface ArchitectureCalls {
  /** As the kernel names the machine (linux/audit.h). */
  readonly audit: number;
  /** A second way to call the same kernel, with numbers of its own from here on. */
  readonly foreignFrom?: number | undefined;
  readonly clone: number;
  readonly unshare: number;
  readonly socket: number;
  readonly ioctl: number;
  readonly personality: number;
  readonly refused: Readonly<Record<string, number>>;
}

/** The same number everywhere. */
const NEW_CALLS = {
  io_uring_setup: 425,
  io_uring_enter: 426,
  io_uring_register: 427,
  open_tree: 428,
  move_mount: 429,
  fsopen: 430,
  fsconfig: 431,
  fsmount: 432,
  fspick: 433,
  pidfd_getfd: 438,
  process_madvise: 440,
  mount_setattr: 442,
  quotactl_fd: 443,
  open_tree_attr: 467,
};

/** All that `clone` makes anew but CLONE_NEWTIME, which stands among its signals; `unshare` has that too. */
export const NEW_NAMESPACES = 0x7e020000;
export const NEW_TIME = 0x80;

/** Also the number of `clone3` is the same everywhere; its flags stand where no filter can look. */
export const CLONE3 = 435;

export const CALLS: Readonly<Record<Architecture, ArchitectureCalls>> = {
  x64: {
    audit: 0xc000003e,
    foreignFrom: 0x40000000,
    clone: 56,
    unshare: 272,
    socket: 41,
    ioctl: 16,
    personality: 135,
    refused: {
      ...NEW_CALLS,
      ptrace: 101,
      syslog: 103,
      uselib: 134,
      vhangup: 153,
      modify_ldt: 154,
      pivot_root: 155,
      _sysctl: 156,
      acct: 163,
      settimeofday: 164,
      mount: 165,
      umount2: 166,
      swapon: 167,
      swapoff: 168,
      reboot: 169,
      sethostname: 170,
      setdomainname: 171,
      iopl: 172,
      ioperm: 173,
      create_module: 174,
      init_module: 175,
      delete_module: 176,
      quotactl: 179,
      nfsservctl: 180,
      lookup_dcookie: 212,
      clock_settime: 227,
      kexec_load: 246,
      add_key: 248,
      request_key: 249,
      keyctl: 250,
      migrate_pages: 256,
      move_pages: 279,
      perf_event_open: 298,
      fanotify_init: 300,
      open_by_handle_at: 304,
      setns: 308,
      process_vm_readv: 310,
      process_vm_writev: 311,
      kcmp: 312,
      finit_module: 313,
      kexec_file_load: 320,
      bpf: 321,
      userfaultfd: 323,
    },
  },
  arm64: {
    audit: 0xc00000b7,
    clone: 220,
    unshare: 97,
    socket: 198,
    ioctl: 29,
    personality: 92,
    refused: {
      ...NEW_CALLS,
      lookup_dcookie: 18,
      umount2: 39,
      mount: 40,
      pivot_root: 41,
      nfsservctl: 42,
      vhangup: 58,
      quotactl: 60,
      acct: 89,
      kexec_load: 104,
      init_module: 105,
      delete_module: 106,
      clock_settime: 112,
      syslog: 116,
      ptrace: 117,
      reboot: 142,
      sethostname: 161,
      setdomainname: 162,
      settimeofday: 170,
      add_key: 217,
      request_key: 218,
      keyctl: 219,
      swapon: 224,
      swapoff: 225,
      migrate_pages: 238,
      move_pages: 239,
      perf_event_open: 241,
      fanotify_init: 262,
      open_by_handle_at: 265,
      setns: 268,
      process_vm_readv: 270,
      process_vm_writev: 271,
      kcmp: 272,
      finit_module: 273,
      bpf: 280,
      userfaultfd: 282,
      kexec_file_load: 294,
    },
  },
};
