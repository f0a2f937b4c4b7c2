"""The EM algorithm of the JCFO paper."""
