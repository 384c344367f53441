# Facts about the host where it runs, for `stagegen doctor`, in one line: NAME=VALUE, separated by
# tabs. Needs no file of the host but sh, so that it runs where the shared folder is missing.
#
#   sh -c "$(cat doctor.sh)" doctor TOKEN_FILE PROGRAM

plain() { tr -s '\t\n\r' '   ' | cut -c 1-300; }

# Bytes that came and went by all devices but the loopback so far.
bytes() {
    total=0
    while read -r device came _ _ _ _ _ _ _ went _; do
        case $device in
            lo:) ;;
            *:) total=$((total + came + went)) ;;
        esac
    done < /proc/net/dev
    echo "$total"
}

rank=${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-${PMIX_RANK:-${SLURM_PROCID:--1}}}}
name=${LIBCOLL_HOST:-$(cat /proc/sys/kernel/hostname)}
token=$(cat "$1" 2> /dev/null | plain)
if said=$(LD_BIND_NOW=1 "$2" load 2>&1); then loads=yes; else loads=$(echo "no: $said" | plain); fi
governor=$(cat /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor 2> /dev/null | sort -u | plain)
# Hyperthreads of one core are one, as for `stagegen tune`.
cores=$(cat /sys/devices/system/cpu/cpu[0-9]*/topology/thread_siblings_list 2> /dev/null | sort -u | wc -l)
if [ "$cores" -eq 0 ]; then cores=$(getconf _NPROCESSORS_ONLN); fi
before=$(bytes)
sleep 1
traffic=$(($(bytes) - before))
printf 'doctor\trank=%s\tname=%s\tslurm=%s\tmachine=%s\tcpus=%s\ttoken=%s\tloads=%s\tgovernor=%s\ttraffic=%s\n' \
    "$rank" "$name" "${SLURMD_NODENAME-}" "$(cat /proc/sys/kernel/random/boot_id)" \
    "$cores" "$token" "$loads" "$governor" "$traffic"
